package checkpoint_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// value is what rank r saves in a version.
func value(r, version int) []float64 {
	x := make([]float64, 10+r)
	for i := range x {
		x[i] = float64(r*1000 + version*10 + i)
	}
	return x
}

func corrupted(err error) bool { return errors.As(err, new(*mpicx.CommCorruptedError)) }

func propagated(err error) bool { return errors.As(err, new(*mpicx.PropagatedError)) }

// seedOf is the seed of a test's random numbers, the same in every run without MPICX_SEED.
func seedOf(t *testing.T) uint64 {
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("MPICX_SEED"), "1"), 10, 64)
	require.NoError(t, err)
	return seed
}

func runs(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened opens a store, or throws.
func opened(ctx context.Context, comm *mpicx.Comm, opts ...checkpoint.Option) *checkpoint.Store {
	st, err := checkpoint.Open(ctx, comm, opts...)
	mpicx.Throw(err)
	return st
}

// open is opened, with a variable that is protected as "x".
func open(ctx context.Context, comm *mpicx.Comm, opts ...checkpoint.Option) (*checkpoint.Store, *[]float64) {
	st, x := opened(ctx, comm, opts...), value(comm.Rank(), 0)
	st.Protect("x", &x)
	return st, &x
}

// restored restores, or throws.
func restored(ctx context.Context, st *checkpoint.Store) (version int) {
	version, err := st.Restore(ctx)
	mpicx.Throw(err)
	return version
}

// restores is restored, and checks the version.
func restores(ctx context.Context, t *testing.T, st *checkpoint.Store, version int) {
	require.Equal(t, version, restored(ctx, st))
}

// loads checks what a rank has saved.
func loads[T mpicx.Scalar](ctx context.Context, t *testing.T, st *checkpoint.Store, name string, rank, version int, want []T) {
	got, err := checkpoint.Load[T](ctx, st, name, rank, version)
	mpicx.Throw(err)
	require.Equal(t, want, got)
}

// dirs are the directories of the ranks.
type dirs func(rank int) string

func same(dir string) dirs { return func(int) string { return dir } }

// dirsIn returns one directory for all ranks, or one for each.
func dirsIn(dir string, shared bool) dirs {
	if shared {
		return same(dir)
	}
	return func(r int) string { return filepath.Join(dir, fmt.Sprint(r)) }
}

// job is a job of n ranks that restores a version, and saves others, with a Once variable. It
// returns what Restore returns, which is the same at all ranks.
func (of dirs) job(t *testing.T, n int, saves []int, opts ...checkpoint.Option) (version int, failure error) {
	versions, errs := make([]int, n), make([]error, n)
	mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		r, constant := world.Rank(), ""
		st, x := open(ctx, world, append(opts, checkpoint.Dir(of(r)))...)
		st.Protect("constant", &constant, checkpoint.Once)
		if versions[r], errs[r] = st.Restore(ctx); errs[r] == nil {
			require.Equal(t, "c", constant)
		} else {
			require.Empty(t, constant)
		}
		require.Equal(t, value(r, versions[r]), *x)
		constant = "c"
		for _, v := range saves {
			*x = value(r, v)
			st.Save(ctx, v).MustWait(ctx)
		}
		return st.Close(ctx)
	})
	for r := range n {
		require.Equal(t, versions[0], versions[r])
		require.Equal(t, errs[0], errs[r])
	}
	return versions[0], errs[0]
}

// files returns the names in a directory, without which Save they are of.
func files(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, ofSave.ReplaceAllString(e.Name(), ""))
	}
	return names
}

var ofSave = regexp.MustCompile(`\.[0-9a-f]{16}-\d+\.mpicx$`)

// file returns the path of a part of a version.
func file(t *testing.T, dir, part string) string {
	found, err := filepath.Glob(filepath.Join(dir, part+".*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}
