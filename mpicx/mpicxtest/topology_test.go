package mpicxtest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// creations make communicators of the first ranks of c, of a grid, and of a ring.
var creations = map[string]func(c *mpicx.Comm) future.Waiter{
	"Create": func(c *mpicx.Comm) future.Waiter {
		all := []int{0, 1, 2, 3, 4}
		return c.Create(c.Group().Incl(all[:max(1, c.Size()-1)]...))
	},
	"CartCreate": func(c *mpicx.Comm) future.Waiter {
		return mpicx.CartCreate(c, []int{1, max(1, c.Size()-1)}, []bool{false, true})
	},
	"GraphCreate": func(c *mpicx.Comm) future.Waiter {
		n := c.Size()
		return mpicx.GraphCreate(c, []int{(c.Rank() + n - 1) % n}, []int{(c.Rank() + 1) % n})
	},
	"a graph that differs": func(c *mpicx.Comm) future.Waiter {
		return mpicx.GraphCreate(c, nil, slices.Repeat([]int{0}, min(1, c.Rank())))
	},
}

// creating creates a communicator by create. With ErrorsReturn all living ranks have it in the end,
// or none has.
func creating(name string, create func(c *mpicx.Comm) future.Waiter) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		var err error
		for comm := world; comm != nil && err == nil; {
			created := create(comm).Wait(ctx) == nil
			o.note(name, comm, created)
			comm, err = o.unlessAll(ctx, comm, created || name == "a graph that differs")
		}
		return err
	}
}

// using makes a grid and exchanges halos, and makes them anew on what is left after a death.
func using(ctx context.Context, comm *mpicx.Comm) {
	dims, err := mpicx.DimsCreate(comm.Size(), 0, 0)
	mpicx.Throw(err)
	g := mpicx.CartCreate(comm, dims, []bool{true, false}).MustGet(ctx)
	h := mpicx.NewHalo[int](g, []int{2, 2}, 1, true).MustGet(ctx)
	h.Start(make([]int, h.Len())).MustWait(ctx)
	row := g.Sub(false, true).MustGet(ctx)
	mpicx.NeighborAllgather(row, []int{1}, make([]int, 2)).MustWait(ctx)
	comm.Barrier().MustWait(ctx)
}

// One or two ranks die, at any moment. In the end all survivors have the communicator, or none has.
func TestCreationsExhaustive(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	exhaustAll(t, "a grid in use", 2, 4, false, propagating(using))
	for name, create := range creations {
		exhaustAll(t, name, 2, 4, true, creating(name, create))
	}
}
