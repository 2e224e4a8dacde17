package checkpoint_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A disk is the model of what three ranks, which have saved versions 1 and 2, find when the next
// job begins.
type disk struct {
	gone     [2][]int // by version: the ranks whose files are gone
	manifest string   // what has happened to manifests: nothing, or a key of harms
	at       int      // the rank to whose manifest it has happened; -1: to all
}

// harms are what can happen to a manifest. Nil removes it.
var harms = map[string]func([]byte) []byte{
	"removed":    nil,
	"empty":      func([]byte) []byte { return nil },
	"noise":      func([]byte) []byte { return []byte("\x00\xff") },
	"cut early":  func(b []byte) []byte { return b[:len(b)/8] },
	"cut late":   func(b []byte) []byte { return b[:len(b)-5] },
	"of another": func([]byte) []byte { return []byte(`{"name": "another program"}`) },
}

// restores is what Restore must answer: the newest version that is whole, or whose data of the
// newest version are lost. Without a manifest no Save has ended: what is there was interrupted.
func (d disk) restores() (version int, err error) {
	switch {
	case len(d.gone[1]) == 0:
		return 2, nil
	case len(d.gone[0]) == 0:
		return 1, nil
	case d.at < 0 && (d.manifest == "removed" || d.manifest == "of another"):
		return 0, checkpoint.ErrNone
	}
	return 0, &checkpoint.LostError{Version: 2, Ranks: d.gone[1]}
}

// disks returns the cases of one directory for all ranks, or of one for each.
func disks(shared bool) (list []disk) {
	subsets := [][]int{nil, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}}
	for _, one := range subsets {
		for _, two := range subsets {
			list = append(list, disk{[2][]int{one, two}, "", -1})
		}
	}
	for manifest := range harms {
		for _, gone := range [][]int{{1}, {0, 2}} {
			list = append(list, disk{[2][]int{gone, gone}, manifest, -1})
			if !shared {
				list = append(list, disk{[2][]int{gone, gone}, manifest, 1})
			}
		}
	}
	return list
}

// make gives the directories the contents that the model describes, from the saved ones.
func (d disk) make(t *testing.T, saved, of dirs) {
	for r := range 3 {
		if r > 0 && of(r) == of(0) {
			continue
		}
		require.NoError(t, os.CopyFS(of(r), os.DirFS(saved(r))))
		path := filepath.Join(of(r), "MANIFEST.json")
		if d.manifest == "" || d.at >= 0 && d.at != r {
			continue
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.Remove(path))
		if change := harms[d.manifest]; change != nil {
			require.NoError(t, os.WriteFile(path, change(b), 0o666))
		}
	}
	for v, ranks := range d.gone {
		for _, r := range ranks {
			require.NoError(t, os.Remove(file(t, of(r), fmt.Sprintf("v%d.%d-of-3", v+1, r))))
		}
	}
}

// data returns the files of versions.
func (of dirs) data(t *testing.T) (paths []string) {
	for r := range 3 {
		found, err := filepath.Glob(filepath.Join(of(r), "v*"))
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	return paths
}

// The files on the disk decide what Restore returns. It never treats lost data as data that were
// never saved. No Save removes the remains of lost data, because the rest may come back.
func TestLostFiles(t *testing.T) {
	for name, opts := range map[string][]checkpoint.Option{"Partner(0)": {checkpoint.Partner(0)}, "Partner(2)": {checkpoint.Partner(2)}, "RS": {checkpoint.RS(2, 1)}, "Dir": nil} {
		for _, shared := range []bool{true, false} {
			saved := dirsIn(t.TempDir(), shared)
			_, err := saved.job(t, 3, []int{1}, opts...)
			require.Equal(t, checkpoint.ErrNone, err)
			_, err = saved.job(t, 3, []int{2}, opts...)
			require.NoError(t, err)
			for i, d := range disks(shared) {
				if (testing.Short() || opts != nil) && i%7 > 0 {
					continue
				}
				of := dirsIn(filepath.Join(t.TempDir(), "of"), shared)
				d.make(t, saved, of)
				d.testLost(t, of, fmt.Sprintf("%s, shared %v: %+v", name, shared, d), opts)
			}
		}
	}
}

// testLost has jobs restore, save version 3, restore that, and restore when one of its files is
// lost.
func (d disk) testLost(t *testing.T, of dirs, text string, opts []checkpoint.Option) {
	restores := func(want int, failure error, saves ...int) {
		v, err := of.job(t, 3, saves, opts...)
		require.Equal(t, want, v, text)
		require.Equal(t, failure, err, text)
	}
	left := of.data(t)
	want, failure := d.restores()
	restores(want, failure, 3)
	restores(3, nil)
	if want < 2 {
		require.Subset(t, of.data(t), left, text)
	}
	require.NoError(t, os.Remove(file(t, of(1), "v3.1-of-3")))
	if failure != nil {
		failure = &checkpoint.LostError{Version: 3, Ranks: []int{1}}
	}
	restores(want, failure)
}

// A directory of which only a manifest is left, whatever its state, was in use.
func TestLostWithAllFiles(t *testing.T) {
	for manifest, want := range map[string]error{
		"": &checkpoint.LostError{Version: 1, Ranks: []int{0, 1, 2}}, "cut late": &checkpoint.LostError{Version: 1, Ranks: []int{0, 1, 2}},
		"noise": &checkpoint.LostError{Version: -1}, "of another": checkpoint.ErrNone,
	} {
		saved, of := dirsIn(t.TempDir(), true), dirsIn(t.TempDir(), true)
		_, err := saved.job(t, 3, []int{1})
		require.ErrorIs(t, err, checkpoint.ErrNone)
		disk{[2][]int{{0, 1, 2}, nil}, manifest, -1}.make(t, saved, of)
		_, err = of.job(t, 3, []int{1})
		require.Equal(t, want, err)
		v, err := of.job(t, 3, nil)
		require.NoError(t, err)
		require.Equal(t, 1, v)
	}
}

// If a death interrupts the first Save, the version was never saved, unless a rank was told that it
// was. Then it can be restored, and is lost if files are.
func TestInterruptedFirstSave(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	lost := &checkpoint.LostError{Version: 0, Ranks: []int{1, 2}}
	for i := range 4 {
		for k := 1; ; k++ {
			of := dirsIn(t.TempDir(), i%2 == 0)
			var told [3]bool
			killed := mpicxtest.RunFaults(t, 3, fmt.Sprintf("kill %d at operation %d", i/2, k), func(ctx context.Context, world *mpicx.Comm) error {
				st, err := checkpoint.Open(ctx, world, checkpoint.Partner(0), checkpoint.Dir(of(world.Rank())))
				if err == nil {
					x, constant := value(world.Rank(), 0), "c"
					st.Protect("x", &x)
					st.Protect("constant", &constant, checkpoint.Once)
					told[world.Rank()] = st.Save(ctx, 0).Wait(ctx) == nil
				}
				return nil
			})
			saved := slices.Contains(told[:], true)
			if _, err := of.job(t, 3, nil); saved || err != checkpoint.ErrNone {
				require.NoError(t, err, "killed at %d", k)
			}
			for _, path := range of.data(t) {
				if zero, _ := filepath.Match("v0.0-*", filepath.Base(path)); !zero {
					_ = os.Remove(path) // twice, if the directory is shared
				}
			}
			if _, err := of.job(t, 3, nil); saved {
				require.Equal(t, lost, err, "killed at %d", k)
			}
			if len(killed) == 0 {
				require.True(t, saved)
				break
			}
		}
	}
}
