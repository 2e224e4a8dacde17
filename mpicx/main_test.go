package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/mpicx"
)

// In a job of mpirun's an Instance is around all the tests, since each may Run, and
// MPI can be started once.
func TestMain(m *testing.M) {
	if machine.Processes() == 0 {
		goleak.VerifyTestMain(m)
		return
	}
	ctx := context.Background()
	var err error
	code := 1
	if processes, err = mpicx.Initialize(ctx); err == nil {
		code = m.Run()
		err = processes.Finalize(ctx)
		if broken != nil && errors.Is(err, broken) {
			os.Exit(code) // a job that has failed can't be ended: what watches the others is there until the process ends
		}
	}
	if err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// seeded returns a generator whose seed is logged and can be given.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("MPICX_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	seed = share(t, seed)
	t.Logf("MPICX_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
