package mpicxtest_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Whoever dies in whichever step of Fprintf, it ends, and each living rank's line is there.
func TestDeathInFprintf(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	deaths := 0
	for _, h := range []mpicx.Errhandler{mpicx.ErrorsPropagate, mpicx.ErrorsReturn} {
		for n := 2; n <= 4; n++ {
			for r := range n {
				for call := 1; call <= 2; call++ { // the second tells that rank 0 has written
					for step := 1; step <= 3; step++ {
						var out bytes.Buffer
						plan := fmt.Sprintf("kill %d in Fprintf step %d call %d", r, step, call)
						killed := mpicxtest.RunFaults(t, n, plan, func(ctx context.Context, world *mpicx.Comm) error {
							world.SetErrhandler(h)
							if err := world.Fprintf(ctx, &out, "alive"); err != nil && !expected(err) {
								return err
							}
							return nil
						})
						deaths += len(killed)
						for living := range n {
							if !slices.Contains(killed, living) {
								require.Contains(t, out.String(), fmt.Sprintf("[%d] alive\n", living), plan)
							}
						}
					}
				}
			}
		}
	}
	require.Greater(t, deaths, 30)
}
