package mpicxtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A layout makes the communicators of a rank from one that all ranks have, the ground. All of them
// have errors.
type layout func(ctx context.Context, ground *mpicx.Comm) []*mpicx.Comm

var layouts = map[string]layout{
	"grid": func(ctx context.Context, ground *mpicx.Comm) []*mpicx.Comm { // rows and columns, two wide
		return splits(ctx, ground, ground.Rank()/2, ground.Rank()%2)
	},
	// mpi-forum/mpi-issues#20: two thirds each, which have a third in common.
	"overlap": func(ctx context.Context, ground *mpicx.Comm) []*mpicx.Comm {
		colors := []int{0, 0}
		switch ground.Rank() % 3 {
		case 2:
			colors[0] = mpicx.Undefined
		case 0:
			colors[1] = mpicx.Undefined
		}
		return splits(ctx, ground, colors...)
	},
	"siblings": func(ctx context.Context, ground *mpicx.Comm) []*mpicx.Comm {
		return []*mpicx.Comm{ground.Dup().MustGet(ctx), ground.Split(0, 0).MustGet(ctx)}
	},
}

func splits(ctx context.Context, ground *mpicx.Comm, colors ...int) (own []*mpicx.Comm) {
	for _, color := range colors {
		if c := ground.Split(color, 0).MustGet(ctx); c != nil {
			own = append(own, c)
		}
	}
	return own
}

// A use is a piece of work on all communicators of a rank.
type use func(context.Context, []*mpicx.Comm)

var uses = map[string]use{
	"sums": func(ctx context.Context, own []*mpicx.Comm) {
		for _, c := range own {
			mpicx.Allreduce(c, []int{1}, []int{0}, mpicx.Sum).MustWait(ctx)
		}
	},
	"signals": func(ctx context.Context, own []*mpicx.Comm) {
		for range 2 {
			for _, c := range own {
				signal(ctx, c)
			}
		}
	},
}

// byGround has the ground repaired alone, and the others made anew.
func byGround(l layout, u use) program {
	return propagating(func(ctx context.Context, ground *mpicx.Comm) {
		u(ctx, l(ctx, ground))
		ground.Barrier().MustWait(ctx)
	})
}

// each has them repaired, and the ground only if that has an error of its own. An error of one
// breaks all of this rank's. So no rank waits on one of them for a rank that repairs another. A
// rank begins all repairs before it waits for one, so their order, which differs, does not matter.
func each(l layout, u use) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		return propagating(func(ctx context.Context, ground *mpicx.Comm) {
			twice(ctx, l(ctx, ground), o,
				func(own []*mpicx.Comm) error { return guarded(ctx, own, func(ctx context.Context) { u(ctx, own) }) },
				func(c *mpicx.Comm) { o.note("dead", c, deadOf(ctx, c)) })
		})(ctx, world, o)
	}
}

// eachRevoked is each under ErrorsReturn.
func eachRevoked(l layout, u use) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		return caught(func() {
			twice(ctx, allHave(ctx, world, l, o), o,
				func(own []*mpicx.Comm) error { return caught(func() { u(ctx, own) }) },
				func(c *mpicx.Comm) { mpicx.Throw(c.Revoke(ctx)) })
		})
	}
}

// twice does a piece of work two times on communicators. If it fails, it breaks all of them,
// repairs them, and does the work again.
func twice(ctx context.Context, own []*mpicx.Comm, o *outcome, do func([]*mpicx.Comm) error, breaks func(*mpicx.Comm)) {
	for done := 0; done < 2; {
		err := do(own)
		if err == nil {
			done++
			continue
		}
		if !expected(err) && !isPropagated(err) {
			mpicx.Throw(err)
		}
		for _, c := range own {
			breaks(c)
		}
		own = shrunk(ctx, own, o)
	}
}

// deadOf returns the dead of a corrupted communicator, or throws an error of the ground.
func deadOf(ctx context.Context, c *mpicx.Comm) []int {
	told := c.Barrier().Wait(ctx)
	for isPropagated(told) { // older
		told = c.Barrier().Wait(ctx)
	}
	v, ok := errors.AsType[*mpicx.CommCorruptedError](told)
	if !ok || !v.Of(c) {
		mpicx.Throw(told)
	}
	return v.Dead
}

// guarded is Guard of several.
func guarded(ctx context.Context, all []*mpicx.Comm, fn func(context.Context)) error {
	if len(all) == 0 {
		return caught(func() { fn(ctx) })
	}
	return all[0].Guard(ctx, func(ctx context.Context) error { return guarded(ctx, all[1:], fn) })
}

// allHave makes the communicators of a layout on the survivors, again until all ranks have theirs.
func allHave(ctx context.Context, ground *mpicx.Comm, l layout, o *outcome) (own []*mpicx.Comm) {
	for ground != nil {
		err := caught(func() { own = l(ctx, ground) })
		if err != nil {
			mpicx.Throw(ground.Revoke(ctx)) // for the ranks that wait for this one in the next Split
		}
		ground, err = o.unlessAll(ctx, ground, err == nil)
		mpicx.Throw(err)
	}
	return own
}

// shrunk returns what is left of broken communicators. Ranks repair them in opposite orders.
func shrunk(ctx context.Context, own []*mpicx.Comm, o *outcome) []*mpicx.Comm {
	order := slices.Clone(own)
	if own[0].Rank()%2 > 0 {
		slices.Reverse(order)
	}
	repairs := make(map[*mpicx.Comm]*future.Future[*mpicx.Comm])
	for _, c := range order {
		repairs[c] = c.Shrink()
	}
	small := make(map[*mpicx.Comm]*mpicx.Comm)
	for _, c := range order {
		s, err := repairs[c].Get(ctx)
		for isPropagated(err) || isCorrupted(err) && !isAbove(err, c) { // a signal of a rank that did not know
			s, err = c.Shrink().Get(ctx)
		}
		mpicx.Throw(err)
		o.note("size", s, s.Size())
		small[c] = s
	}
	for i, c := range own {
		own[i] = small[c]
	}
	return own
}

// levels has an error repaired where it is: of pairs, of halves, of all. All leave a level
// together, or none does.
func levels(ctx context.Context, world *mpicx.Comm, o *outcome) error {
	return level(ctx, world, o, 2)
}

// level returns nil, or an error that is not of c, which ends it.
func level(ctx context.Context, c *mpicx.Comm, o *outcome, below int) error {
	for {
		err := c.Guard(ctx, func(ctx context.Context) error {
			if below > 0 {
				half := c.Split(2*c.Rank()/c.Size(), 0).MustGet(ctx)
				mpicx.Throw(level(ctx, half, o, below-1))
			}
			return mpicx.Allreduce(c, []int{1}, []int{0}, mpicx.Sum).Wait(ctx)
		})
		if isAbove(err, c) {
			return err
		}
		flag, aerr := c.Agree(btoi(err == nil)).Get(ctx)
		for !isAbove(aerr, c) && isCorrupted(aerr) { // told
			flag, aerr = c.Agree(0).Get(ctx)
		}
		switch {
		case isAbove(aerr, c):
			return aerr
		case aerr == nil && flag == 1:
			o.comm = c.String() // of the world in the end, or of what is left of it
			return nil
		}
		if c, err = o.shrink(ctx, c); err != nil {
			return err
		}
	}
}

func isAbove(err error, c *mpicx.Comm) bool {
	v, ok := errors.AsType[*mpicx.CommCorruptedError](err)
	return ok && !v.Of(c)
}

func families() map[string]program {
	programs := map[string]program{"levels": levels}
	for where, l := range layouts {
		for what, u := range uses {
			programs["by ground/"+where+"/"+what] = byGround(l, u)
			programs["each/"+where+"/"+what] = each(l, u)
			programs["each revoked/"+where+"/"+what] = eachRevoked(l, u)
		}
	}
	return programs
}

// D1, D2, H5: any rank may die at any moment. No rank hangs, and each communicator has the same
// outcome at all its members.
func TestFamilies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for name, run := range families() {
		for i := range 4 + 6 {
			n, r := 4, i
			if i >= n {
				n, r = 6, i-n
			}
			t.Run(fmt.Sprintf("%s/%d/%d", name, n, r), func(t *testing.T) {
				t.Parallel()
				if testing.Short() && (r+n+len(name))%4 > 0 {
					t.Skip("one in four")
				}
				exhaust(t, n, r, false, run)
			})
		}
		t.Run(name+"/random", func(t *testing.T) {
			t.Parallel()
			for seed := range 30 {
				survive(t, 7, fmt.Sprintf("kill any 3 random seed %d of 40", seed), false, run)
			}
		})
	}
}
