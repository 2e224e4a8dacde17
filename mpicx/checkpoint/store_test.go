package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// What was saved last comes back, in slices that keep their memory.
func TestSaveAndRestore(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7} {
		for _, scheme := range []checkpoint.Option{checkpoint.Partner(0), checkpoint.Partner(1), checkpoint.Partner(2), checkpoint.RS(2, 1), checkpoint.RS(3, 2)} {
			mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
				return saveAndRestore(ctx, t, world, scheme)
			})
		}
	}
}

func saveAndRestore(ctx context.Context, t *testing.T, world *mpicx.Comm, scheme checkpoint.Option) error {
	st := opened(ctx, world, scheme)
	x, step, name := []float64{1, 2, 3}, 0, "a"
	st.Protect("x", &x)
	st.Protect("step", &step)
	st.Protect("name", &name)
	_, err := st.Restore(ctx)
	require.ErrorIs(t, err, checkpoint.ErrNone)
	for step = 1; step <= 5; step++ {
		x[0] = float64(world.Rank() + step)
		name += "b"
		f := st.Save(ctx, step)
		if step%2 == 0 {
			require.NoError(t, f.Wait(ctx))
		}
	}
	same := x
	x[0], step, name = -1, -1, ""
	restores(ctx, t, st, 5)
	require.Equal(t, 5, step)
	require.Equal(t, "abbbbb", name)
	require.Equal(t, []float64{float64(world.Rank() + 5), 2, 3}, x)
	same[1] = 7
	require.Equal(t, 7., x[1])
	next := (world.Rank() + 1) % world.Size()
	loads(ctx, t, st, "x", next, 5, []float64{float64(next + 5), 2, 3})
	return st.Close(ctx)
}

// A variable takes the place of the one that had its name: the next attempt of a program protects
// its own. A Once variable that is protected while a Save is under way is in the next version.
func TestProtectAgain(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		st := opened(ctx, world)
		me := world.Rank()
		x, never := []int{me}, []int{7 * me}
		st.Protect("x", &x)
		st.Protect("never", &never, checkpoint.Once)
		st.Save(ctx, 1).MustWait(ctx)
		var y, again []int
		st.Protect("x", &y)
		st.Protect("never", &again, checkpoint.Once)
		restores(ctx, t, st, 1)
		require.Equal(t, [][]int{{me}, {7 * me}}, [][]int{y, again})
		y[0] = me + 10
		second, late := st.Save(ctx, 2), []int{8 * me}
		st.Protect("late", &late, checkpoint.Once)
		second.MustWait(ctx)
		st.Save(ctx, 3).MustWait(ctx)
		y, again, late = nil, nil, nil
		restores(ctx, t, st, 3)
		require.Equal(t, [][]int{{me + 10}, {7 * me}, {8 * me}, {me}}, [][]int{y, again, late, x})
		return st.Close(ctx)
	})
}

// The error of a wrong option names its value and the expected ones.
func TestWrongOptions(t *testing.T) {
	refuses := func(want string, opts ...[]checkpoint.Option) { // of the ranks
		mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
			_, err := checkpoint.Open(ctx, world, opts[world.Rank()]...)
			require.ErrorContains(t, err, want)
			return nil
		})
	}
	for want, opt := range map[string]checkpoint.Option{
		"option 0 is nil, expected one such as Partner(1)":              nil,
		"Partner(-1), expected 0 to 255 copies":                         checkpoint.Partner(-1),
		"RS(0, 2), expected at least 1 and 0, and 256 together at most": checkpoint.RS(0, 2),
		"RS(200, 57), expected":                                         checkpoint.RS(200, 57),
		"MaxBytes(0), expected a positive number":                       checkpoint.MaxBytes(0),
		`Dir(""), expected the path of a directory`:                     checkpoint.Dir(""),
		"Every(0), expected at least 1":                                 checkpoint.Dir("d", checkpoint.Every(0)),
		"Keep(0), expected at least 1":                                  checkpoint.Dir("d", checkpoint.Keep(0)),
	} {
		refuses(want, []checkpoint.Option{opt}, []checkpoint.Option{opt})
	}
	for want, opts := range map[string][][]checkpoint.Option{
		"[1 1 0 0], expected [1 0 0 0] as at rank 0": {{checkpoint.Partner(0)}, {checkpoint.Partner(1)}},
		"[1 1 1 2], expected [1 1 0 0] as at rank 0": {nil, {checkpoint.Dir(t.TempDir())}},
	} {
		refuses("options of rank 1 (k, m, Every, Keep; the last two are 0 without Dir) are "+want, opts...)
	}
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		dir := t.TempDir()
		if world.Rank() == 1 {
			dir = "/dev/null/d"
		}
		_, err := checkpoint.Open(ctx, world, checkpoint.Dir(dir))
		require.ErrorContains(t, err, "rank 1: mkdir /dev/null")
		require.Equal(t, world.Rank() == 1, errors.As(err, new(*os.PathError)), "it keeps its cause")
		return nil
	})
}

// An Attempt without the option Checkpoint has no Store.
func TestNilStore(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		var s *checkpoint.Store
		_, rejoined := s.Rejoin(ctx, world)
		_, restored := s.Restore(ctx)
		_, loaded := checkpoint.Load[int](ctx, s, "x", 0, 1)
		_, value := checkpoint.LoadValue[string](ctx, s, "x", 0, 1)
		for _, err := range []error{rejoined, restored, loaded, value, s.Save(ctx, 1).Wait(ctx), s.Close(ctx)} {
			require.ErrorContains(t, err, ": nil Store (what an Attempt of recovery.Run has without its option Checkpoint)")
		}
		const text = "checkpoint: %s: nil Store (what an Attempt of recovery.Run has without its option Checkpoint)"
		require.PanicsWithValue(t, fmt.Sprintf(text, "Protect"), func() { s.Protect("x", new(int)) })
		require.PanicsWithValue(t, fmt.Sprintf(text, "Stats"), func() { s.Stats() })
		return nil
	})
}

// What cannot be saved is an error at all ranks, and the version before is whole.
func TestSaveThatFails(t *testing.T) {
	for _, test := range []struct {
		name string
		fail func(st *checkpoint.Store, x *[]float64) (version int)
		want string
		opts []checkpoint.Option
	}{
		{"variable: no pointer", func(st *checkpoint.Store, x *[]float64) int { st.Protect("y", 7); return 2 }, `Protect("y") of a int, expected a pointer that is not nil`, nil},
		{"variable: no gob", func(st *checkpoint.Store, x *[]float64) int { st.Protect("f", new(func())); return 2 }, `variable "f": gob`, nil},
		{"variable: nil behind a pointer", func(st *checkpoint.Store, x *[]float64) int { p := new(*int); st.Protect("f", &p); return 2 }, `variable "f": gob: a nil *int`, nil},
		{"version", func(st *checkpoint.Store, x *[]float64) int { return 0 }, "version 0, expected at least 1", nil},
		{"negative", func(st *checkpoint.Store, x *[]float64) int { return -2 }, "version -2, expected at least 1", nil},
		{"different", func(st *checkpoint.Store, x *[]float64) int { return 3 }, "ranks save versions 2 and 3 at a time, expected all the same", nil},
		{"too large", func(st *checkpoint.Store, x *[]float64) int { *x = make([]float64, 1000); return 2 }, "bytes, expected at most 20000 (MaxBytes)", []checkpoint.Option{checkpoint.MaxBytes(20000)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
				st := opened(ctx, world, test.opts...)
				x := value(world.Rank(), 1)
				st.Protect("x", &x)
				st.Save(ctx, 1).MustWait(ctx)
				st, err := st.Rejoin(ctx, world.Dup().MustGet(ctx)) // where it still has that version's memory
				require.NoError(t, err)
				version := 2
				if world.Rank() == 1 {
					version = test.fail(st, &x)
				} else {
					x = value(world.Rank(), 2)
				}
				err = st.Save(ctx, version).Wait(ctx)
				e, ok := errors.AsType[*checkpoint.SaveError](err)
				require.True(t, ok, "%v", err)
				require.False(t, e.InMemory)
				if world.Rank() == 1 || test.name == "different" || test.name == "too large" {
					require.ErrorContains(t, err, test.want)
				} else {
					require.NoError(t, e.Err)
				}
				if strings.HasPrefix(test.name, "variable: ") {
					return st.Close(ctx)
				}
				x = nil
				restores(ctx, t, st, 1)
				require.Equal(t, value(world.Rank(), 1), x)
				x = value(world.Rank(), 3)
				st.Save(ctx, 3).MustWait(ctx)
				return st.Close(ctx)
			})
		})
	}
}

// What is Once is sent once. Memory and messages are what the documentation says.
func TestCosts(t *testing.T) {
	const n, size, large = 6, 120_000, 1_200_000
	for _, s := range []struct {
		option       checkpoint.Option
		memory, sent int // of the data, times 12
	}{{checkpoint.Partner(0), 12, 0}, {checkpoint.Partner(1), 24, 12}, {checkpoint.Partner(2), 36, 24}, {checkpoint.RS(4, 2), 18, 24}, {checkpoint.RS(3, 1), 16, 12}} {
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			st := opened(ctx, world, s.option)
			x, constant := make([]byte, size), make([]byte, large)
			st.Protect("x", &x)
			st.Protect("constant", &constant, checkpoint.Once)
			const versions = 5
			for v := range versions {
				st.Save(ctx, v).MustWait(ctx)
			}
			stats := st.Stats()
			require.Equal(t, versions, stats.Saves)
			require.Equal(t, versions, stats.Versions)
			require.InEpsilon(t, (2*size+large)*s.memory/12, stats.Memory, 0.02)
			require.InDelta(t, (versions*size+large)*s.sent/12, stats.Sent, 5000)
			return st.Close(ctx)
		})
	}
}

// Save returns at once, even if other ranks have not called it yet. One rank alone may wait for it,
// while the others continue without the store.
func TestSaveIsAsynchronous(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		st, _ := open(ctx, world, checkpoint.RS(2, 1))
		if world.Rank() == 3 {
			time.Sleep(time.Hour) // of fake time
		}
		begin := time.Now()
		f := st.Save(ctx, 0)
		require.Zero(t, time.Since(begin))
		if world.Rank() == 1 {
			f.MustWait(ctx)
		}
		world.Barrier().MustWait(ctx)
		return st.Close(ctx)
	})
}

// What does not fit the variables is an error, and sets none.
func TestRestoreThatDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	_, _ = same(dir).job(t, 2, []int{1})
	for want, protect := range map[string]func(st *checkpoint.Store){
		`no variable "y"`: func(st *checkpoint.Store) { st.Protect("y", new(int)) },
		`"x" was saved as []float64, expected []int`:   func(st *checkpoint.Store) { st.Protect("x", new([]int)) },
		`"x" was saved as []float64, expected int8`:    func(st *checkpoint.Store) { st.Protect("x", new(int8)) },
		`"constant" was saved as a gob, expected uint`: func(st *checkpoint.Store) { st.Protect("constant", new(uint)) },
	} {
		mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
			st := opened(ctx, world, checkpoint.Dir(dir))
			constant := "before"
			if want[1] != 'c' {
				st.Protect("constant", &constant, checkpoint.Once)
			}
			protect(st)
			_, err := st.Restore(ctx)
			require.ErrorContains(t, err, want)
			require.Equal(t, "before", constant)
			return st.Close(ctx)
		})
	}
}

type explosive struct{}

func (explosive) GobEncode() ([]byte, error) { panic("encoded") }
func (*explosive) GobDecode([]byte) error    { return nil }

// A panic of a variable's own encoder is the rank's.
func TestSaveThatPanics(t *testing.T) {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		st, _ := open(ctx, world)
		if world.Rank() == 1 {
			st.Protect("y", new(explosive))
		}
		return st.Save(ctx, 1).Wait(ctx)
	}, mpicx.WithRanks(3))
	p, ok := errors.AsType[*mpicx.PanicError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, 1, p.Rank)
	require.Equal(t, "encoded", p.Value)
}
