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

// restores checks the version that the next job of n ranks restores.
func (of dirs) restores(t *testing.T, n, version int) {
	t.Helper()
	v, err := of.job(t, n, nil)
	require.NoError(t, err)
	require.Equal(t, version, v)
}

// The next job has the newest version, whether the directory is shared or not, and of old
// ones as many as were asked for.
func TestFiles(t *testing.T) {
	for _, shared := range []bool{true, false} {
		dir := t.TempDir()
		of := dirsIn(dir, shared)
		_, _ = of.job(t, 3, []int{1, 2, 3, 4, 5}, checkpoint.Option(checkpoint.Keep(3)))
		of.restores(t, 3, 5)
		if !shared { // nor do the files of a rank stay where another rank is now
			_, _ = dirs(func(r int) string { return of((r + 1) % 3) }).job(t, 3, []int{6, 7, 8, 9}, checkpoint.Option(checkpoint.Keep(3)))
			require.Equal(t, []string{"MANIFEST.json", "v7.0-of-3", "v8.0-of-3", "v9.0-of-3"}, files(t, of(1)))
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
		require.NoError(t, errors.Join(err, json.Unmarshal(text, &m)))
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
	_, _ = same(dir).job(t, 2, []int{1, 2, 3, 4, 5, 6, 7, 8}, checkpoint.Option(checkpoint.Every(3)))
	same(dir).restores(t, 2, 6)
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
			_, _ = same(dir).job(t, 3, []int{1, 2})
			path := file(t, dir, "v2.1-of-3")
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, harm(b), 0o666))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "v3.0-of-9000000000000000000.0123456789abcdef-1.mpicx"), nil, 0o666)) // no Save's
			same(dir).restores(t, 3, 1)
		})
	}
}

// A file of another Save under the same name, whole as it is, is not taken for the missing one.
func TestFileOfAnotherSave(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	_, _ = same(dir).job(t, 2, []int{1, 2})
	_, _ = same(other).job(t, 2, []int{1, 2})
	missing := file(t, dir, "v2.1-of-2")
	require.NoError(t, os.Rename(file(t, other, "v2.1-of-2"), missing))
	same(dir).restores(t, 2, 1)
	require.NoError(t, os.Rename(file(t, dir, "v1.0-of-2"), missing))
	_, err := same(dir).job(t, 2, nil)
	require.Equal(t, &checkpoint.LostError{Version: 2, Ranks: []int{1}}, err)
}

// Other ranks than have saved a version have no part in it, and load what they want.
func TestFilesOfAnotherNumberOfRanks(t *testing.T) {
	for _, m := range []int{1, 3, 5} {
		dir := t.TempDir()
		_, _ = same(dir).job(t, 4, []int{1, 2})
		_, err := same(dir).job(t, m, nil)
		require.Equal(t, &checkpoint.PartsError{Version: 2, Parts: 4, Ranks: m}, err)
		mpicxtest.Run(t, m, func(ctx context.Context, world *mpicx.Comm) error {
			st := opened(ctx, world, checkpoint.Dir(dir))
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
	path := dirsIn(t.TempDir(), false)
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
