package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func ulfm(t *testing.T) {
	if mpicx.Backend != "ulfm" {
		t.Skip("the black channel sees no process die")
	}
}

// value is what rank r saves in a version.
func value(r, version int) []float64 {
	x := make([]float64, 10+r)
	for i := range x {
		x[i] = float64(r*1000 + version*10 + i)
	}
	return x
}

// shrunk waits until the deaths are known, and returns a communicator of the living.
func shrunk(ctx context.Context, c *mpicx.Comm) (*mpicx.Comm, error) {
	for {
		if _, err := c.Agree(1).Get(ctx); err == nil || errors.As(err, new(*mpicx.CommCorruptedError)) || errors.As(err, new(*mpicx.ProcFailedError)) {
			break
		}
	}
	return c.Shrink().Get(ctx)
}

type lossScheme struct {
	name     string
	option   checkpoint.Option
	n        int
	survives [][]int
	loses    map[string][]int // the ranks that die, and those whose data are lost
}

var schemes = []lossScheme{
	{"partner 1", checkpoint.Partner(1), 4, [][]int{{0}, {3}, {0, 2}, {1, 3}}, map[string][]int{"0 1": {0, 1}, "1 2 3": {2, 3}}},
	{"partner 2", checkpoint.Partner(2), 6, [][]int{{0, 1}, {1, 2}, {0, 2, 3, 5}}, map[string][]int{"0 1 2": {0, 1, 2}}},
	{"RS(2, 1)", checkpoint.RS(2, 1), 6, [][]int{{0}, {2}, {1, 5}}, map[string][]int{"0 1": {0, 1}, "3 5": {3, 5}}},
	{"RS(4, 2)", checkpoint.RS(4, 2), 7, [][]int{{0, 1}, {2, 5}, {3, 6}}, map[string][]int{"0 1 2": {0, 1, 2}}},
	{"RS(3, 3)", checkpoint.RS(3, 3), 6, [][]int{{0, 1, 2}, {1, 3, 5}}, map[string][]int{"2 3 4 5": {2, 3, 4, 5}}},
}

// lose saves versions, has ranks die, and restores among the others. Check is called with
// what Restore returned there.
func lose(t *testing.T, s lossScheme, dying []int, check func(ctx context.Context, world *mpicx.Comm, st *checkpoint.Store, x []float64, v int, err error) error) {
	mpicxtest.Run(t, s.n, func(ctx context.Context, world *mpicx.Comm) error {
		st, err := checkpoint.Open(ctx, world, s.option)
		if err != nil {
			return err
		}
		var x []float64
		constant := []int{world.Rank()}
		st.Protect("x", &x)
		st.Protect("constant", &constant, checkpoint.Once)
		for v := range 3 {
			x = value(world.Rank(), v)
			if err := st.Save(ctx, v).Wait(ctx); err != nil {
				return err
			}
		}
		if err := world.Barrier().Wait(ctx); err != nil {
			return err
		}
		if slices.Contains(dying, world.Rank()) {
			mpicxtest.Die(world)
		}
		fewer, err := shrunk(ctx, world)
		if err != nil {
			return err
		}
		if st, err = st.Rejoin(ctx, fewer); err != nil {
			return fmt.Errorf("rejoin: %w", err)
		}
		x = nil
		v, err := st.Restore(ctx)
		if err := check(ctx, world, st, x, v, err); err != nil {
			return err
		}
		return st.Close(ctx)
	})
}

// Each scheme survives the deaths that it promises to. Everybody has his own part again, and
// can load those of the dead.
func TestDeaths(t *testing.T) {
	ulfm(t)
	for _, s := range schemes {
		for _, dying := range s.survives {
			t.Run(fmt.Sprint(s.name, dying), func(t *testing.T) {
				lose(t, s, dying, func(ctx context.Context, world *mpicx.Comm, st *checkpoint.Store, x []float64, v int, err error) error {
					if err != nil {
						return err
					}
					require.Equal(t, 2, v)
					require.Equal(t, value(world.Rank(), 2), x)
					for _, r := range dying {
						part, err := checkpoint.Load[float64](ctx, st, "x", r, v)
						if err != nil {
							return err
						}
						require.Equal(t, value(r, 2), part)
						once, err := checkpoint.Load[int](ctx, st, "constant", r, v)
						if err != nil {
							return err
						}
						require.Equal(t, []int{r}, once)
					}
					return nil
				})
			})
		}
	}
}

// One more is an error that says what is lost, the same at all.
func TestTooManyDeaths(t *testing.T) {
	ulfm(t)
	for _, s := range schemes {
		for text, lost := range s.loses {
			t.Run(fmt.Sprint(s.name, text), func(t *testing.T) {
				var dying []int
				for r := range s.n {
					if slices.Contains(bytesOf(text), byte('0'+r)) {
						dying = append(dying, r)
					}
				}
				lose(t, s, dying, func(_ context.Context, _ *mpicx.Comm, _ *checkpoint.Store, x []float64, _ int, err error) error {
					e, ok := errors.AsType[*checkpoint.LostError](err)
					require.True(t, ok, "%v", err)
					require.Equal(t, &checkpoint.LostError{Version: 2, Ranks: lost}, e)
					require.Nil(t, x)
					return nil
				})
			})
		}
	}
}

func bytesOf(s string) []byte { return []byte(s) }
