package mpicxtest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// creations make communicators of the first ranks of c, of a grid, and of a ring.
var creations = map[string]func(c *mpicx.Comm) future.Waiter{
	"Create": func(c *mpicx.Comm) future.Waiter {
		g := c.Group()
		return c.Create(g.Incl(upTo(max(1, g.Size()-1))...))
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

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// creating creates a communicator by create. With ErrorsReturn all living ranks have it in the end,
// or none has.
func creating(name string, create func(c *mpicx.Comm) future.Waiter) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		for comm := world; ; {
			err := create(comm).Wait(ctx)
			o.dead[name+" on "+comm.String()] = fmt.Sprint(err == nil)
			flag := 1
			if err != nil {
				flag = 0
			}
			flag, err = comm.Agree(flag).Get(ctx)
			if err == nil && (flag == 1 || name == "a graph that differs") {
				o.comm = comm.String()
				return nil
			}
			if err != nil && !expected(err) {
				return err
			}
			if comm, err = comm.Shrink().Get(ctx); err != nil {
				return fmt.Errorf("shrink: %w", err)
			}
			o.size[comm.String()] = comm.Size()
		}
	}
}

// using makes a grid and exchanges halos, and makes them anew on what is left after a death.
func using(ctx context.Context, comm *mpicx.Comm) error {
	dims, err := mpicx.DimsCreate(comm.Size(), 0, 0)
	if err != nil {
		return err
	}
	g, err := mpicx.CartCreate(comm, dims, []bool{true, false}).Get(ctx)
	if err != nil {
		return err
	}
	h, err := mpicx.NewHalo[int](g, []int{2, 2}, 1, true).Get(ctx)
	if err != nil {
		return err
	}
	if err := h.Start(make([]int, h.Len())).Wait(ctx); err != nil {
		return err
	}
	row, err := g.Sub(false, true).Get(ctx)
	if err != nil {
		return err
	}
	if err := mpicx.NeighborAllgather(row, []int{1}, make([]int, 2)).Wait(ctx); err != nil {
		return err
	}
	return comm.Barrier().Wait(ctx)
}

// One or two ranks die, at any moment. In the end all survivors have the communicator, or none has.
func TestCreationsExhaustive(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	programs := map[string]program{"a grid in use": propagating(using)}
	for name, create := range creations {
		programs[name] = creating(name, create)
	}
	for name, p := range programs {
		for n := 2; n <= 4; n++ {
			for r := range n {
				t.Run(fmt.Sprintf("%s/%d/%d", name, n, r), func(t *testing.T) {
					t.Parallel()
					exhaust(t, n, r, name != "a grid in use", p)
				})
			}
		}
	}
}
