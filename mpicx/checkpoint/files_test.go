package checkpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// saveFiles has n ranks save versions from 1 on, in the directory that dir returns for a rank.
func saveFiles(t *testing.T, n, versions int, dir func(rank int) string, opts ...checkpoint.DirOption) {
	mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		st := opened(ctx, world, checkpoint.Partner(1), checkpoint.Dir(dir(world.Rank()), opts...))
		var x []float64
		constant := "c"
		st.Protect("x", &x)
		st.Protect("constant", &constant, checkpoint.Once)
		for v := 1; v <= versions; v++ {
			x = value(world.Rank(), v)
			st.Save(ctx, v).MustWait(ctx)
		}
		return st.Close(ctx)
	})
}

// restoreFiles has n ranks open the directory in another job, and returns what Restore did at each.
func restoreFiles(t *testing.T, n int, dir func(rank int) string) (versions []int, errs []error) {
	versions, errs = make([]int, n), make([]error, n)
	mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		r := world.Rank()
		st := opened(ctx, world, checkpoint.Partner(1), checkpoint.Dir(dir(r)))
		var x []float64
		constant := ""
		st.Protect("x", &x)
		st.Protect("constant", &constant, checkpoint.Once)
		if versions[r], errs[r] = st.Restore(ctx); errs[r] == nil {
			require.Equal(t, value(r, versions[r]), x)
			require.Equal(t, "c", constant)
		} else {
			require.Nil(t, x)
		}
		return st.Close(ctx)
	})
	return versions, errs
}

// The next job has the newest version, whether the directory is shared or not, and of old
// ones as many as were asked for.
func TestFiles(t *testing.T) {
	for _, shared := range []bool{true, false} {
		dir := t.TempDir()
		of := func(r int) string {
			if shared {
				return dir
			}
			return filepath.Join(dir, fmt.Sprint(r))
		}
		saveFiles(t, 3, 5, of, checkpoint.Keep(3))
		versions, errs := restoreFiles(t, 3, of)
		require.Equal(t, []error{nil, nil, nil}, errs)
		require.Equal(t, []int{5, 5, 5}, versions)
		if !shared {
			require.Equal(t, []string{"MANIFEST.json", "v3.1-of-3", "v4.1-of-3", "v5.1-of-3"}, files(t, of(1)))
			continue
		}
		require.Len(t, files(t, dir), 10)
		var m struct {
			Format   int
			Versions []struct {
				Version, Parts int
				Files          []string
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &m))
		require.Equal(t, 1, m.Format)
		require.Len(t, m.Versions, 3)
		require.Equal(t, 5, m.Versions[0].Version)
		for part, name := range m.Versions[0].Files {
			require.Equal(t, file(t, dir, fmt.Sprintf("v5.%d-of-3", part)), filepath.Join(dir, name))
		}
	}
}

func TestEvery(t *testing.T) {
	dir := t.TempDir()
	saveFiles(t, 2, 8, same(dir), checkpoint.Every(3))
	versions, _ := restoreFiles(t, 2, same(dir))
	require.Equal(t, []int{6, 6}, versions)
	require.Len(t, files(t, dir), 5)
}

// Whatever happens to a file of the newest version, the older one is restored, at all ranks.
func TestBadFiles(t *testing.T) {
	for name, harm := range map[string]func([]byte) []byte{
		"truncated":            func(b []byte) []byte { return b[:len(b)-1] },
		"empty":                func([]byte) []byte { return nil },
		"longer":               func(b []byte) []byte { return append(b, 0) },
		"header flipped":       func(b []byte) []byte { b[33] ^= 1; return b },
		"data flipped":         func(b []byte) []byte { b[len(b)-20] ^= 4; return b },
		"checksum flipped":     func(b []byte) []byte { b[len(b)-1] ^= 0x80; return b },
		"foreign":              func([]byte) []byte { return []byte(strings.Repeat("not a checkpoint", 20)) },
		"truncated to headers": func(b []byte) []byte { return b[:68] },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			saveFiles(t, 3, 2, same(dir))
			path := file(t, dir, "v2.1-of-3")
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, harm(b), 0o666))
			versions, errs := restoreFiles(t, 3, same(dir))
			require.Equal(t, []error{nil, nil, nil}, errs)
			require.Equal(t, []int{1, 1, 1}, versions)
		})
	}
}

// A file of another Save under the same name, whole as it is, is not taken for the missing one.
func TestFileOfAnotherSave(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	saveFiles(t, 2, 2, same(dir))
	saveFiles(t, 2, 2, same(other))
	missing := file(t, dir, "v2.1-of-2")
	require.NoError(t, os.Rename(file(t, other, "v2.1-of-2"), missing))
	versions, _ := restoreFiles(t, 2, same(dir))
	require.Equal(t, []int{1, 1}, versions)
	require.NoError(t, os.Rename(file(t, dir, "v1.0-of-2"), missing))
	_, errs := restoreFiles(t, 2, same(dir))
	require.Equal(t, &checkpoint.LostError{Version: 2, Ranks: []int{1}}, errs[0])
}

// Other ranks than have saved a version have no part in it, and load what they want.
func TestFilesOfAnotherNumberOfRanks(t *testing.T) {
	for _, m := range []int{1, 3, 5} {
		dir := t.TempDir()
		saveFiles(t, 4, 2, same(dir))
		_, errs := restoreFiles(t, m, same(dir))
		for _, err := range errs {
			require.Equal(t, &checkpoint.PartsError{Version: 2, Parts: 4, Ranks: m}, err)
		}
		mpicxtest.Run(t, m, func(ctx context.Context, world *mpicx.Comm) error {
			st := opened(ctx, world, checkpoint.Dir(dir))
			var x []float64
			st.Protect("x", &x)
			if _, err := st.Restore(ctx); !errors.As(err, new(*checkpoint.PartsError)) {
				return fmt.Errorf("restore: %w", err)
			}
			for v := range 2 { // the older one is in files only
				for part := range 4 {
					loads(ctx, t, st, "x", part, v+1, value(part, v+1))
				}
			}
			text, err := checkpoint.LoadValue[string](ctx, st, "constant", world.Rank()%4, 2)
			require.NoError(t, err)
			require.Equal(t, "c", text)
			_, err = checkpoint.Load[float64](ctx, st, "x", 4, 2)
			require.ErrorContains(t, err, "version 2 of rank 4 is not there")
			_, err = checkpoint.Load[float64](ctx, st, "y", 1, 2)
			require.ErrorContains(t, err, `no variable "y"`)
			_, err = checkpoint.Load[float32](ctx, st, "x", checkpoint.None, 2)
			require.NoError(t, err)
			_, err = checkpoint.Load[float32](ctx, st, "x", 0, 2)
			require.ErrorContains(t, err, "saved as []float64, expected []float32")
			return st.Close(ctx)
		})
	}
}

// A disk that takes no more is an error at all ranks; the version is in memory, and the files
// of the older one remain.
func TestNoRoomForFiles(t *testing.T) {
	dir := t.TempDir()
	path := func(r int) string { return filepath.Join(dir, fmt.Sprint(r)) }
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		st := opened(ctx, world, checkpoint.Dir(path(world.Rank())))
		step := 1
		st.Protect("step", &step)
		st.Save(ctx, 1).MustWait(ctx)
		if world.Rank() == 1 {
			require.NoError(t, os.Rename(path(1), path(11)))
		}
		step = 2
		err := st.Save(ctx, 2).Wait(ctx)
		e, ok := errors.AsType[*checkpoint.SaveError](err)
		require.True(t, ok, "%v", err)
		require.True(t, e.InMemory)
		require.Equal(t, 2, e.Version)
		require.Equal(t, world.Rank() == 1, errors.Is(err, os.ErrNotExist))
		step = 3
		v, err := st.Restore(ctx)
		require.Equal(t, 2, v)
		require.Equal(t, 2, step)
		return errors.Join(err, st.Close(ctx))
	})
	require.Equal(t, []string{"MANIFEST.json", "v1.1-of-3"}, files(t, path(11)))
	require.Equal(t, []string{"MANIFEST.json", "v1.0-of-3"}, files(t, path(0)), "a full disk needs the room")
}

// When more ranks die than the group survives, the files have an older version.
func TestFilesAfterTooManyDeaths(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	dir := t.TempDir()
	s := lossScheme{"", checkpoint.Dir(dir, checkpoint.Every(2)), 4, nil, nil}
	lose(t, s, []int{0, 1}, func(ctx context.Context, world *mpicx.Comm, st *checkpoint.Store, x []float64, v int, err error) error {
		if err != nil {
			return err
		}
		require.Equal(t, 1, v) // of 0, 1 and 2
		require.Equal(t, value(world.Rank(), 1), x)
		part, err := checkpoint.Load[float64](ctx, st, "x", 0, v)
		require.Equal(t, value(0, 1), part)
		return err
	})
}
