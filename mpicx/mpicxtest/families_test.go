package mpicxtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Ranks in several communicators, all of which have errors. A layout makes those of a rank from
// one that all ranks have, the ground.
type layout func(ctx context.Context, ground *mpicx.Comm) ([]*mpicx.Comm, error)

var layouts = map[string]layout{
	"grid": func(ctx context.Context, ground *mpicx.Comm) ([]*mpicx.Comm, error) { // rows and columns, two wide
		return splits(ctx, ground, ground.Rank()/2, ground.Rank()%2)
	},
	// mpi-forum/mpi-issues#20: two thirds each, which have a third in common.
	"overlap": func(ctx context.Context, ground *mpicx.Comm) ([]*mpicx.Comm, error) {
		in := func(without int) int {
			if ground.Rank()%3 == without {
				return mpicx.Undefined
			}
			return 0
		}
		return splits(ctx, ground, in(2), in(0))
	},
	"siblings": func(ctx context.Context, ground *mpicx.Comm) ([]*mpicx.Comm, error) {
		return splits(ctx, ground, 0, 0)
	},
}

func splits(ctx context.Context, ground *mpicx.Comm, colors ...int) (own []*mpicx.Comm, err error) {
	for _, color := range colors {
		c, err := ground.Split(color, 0).Get(ctx)
		if err != nil {
			return nil, err
		}
		if c != nil {
			own = append(own, c)
		}
	}
	return own, nil
}

// Pieces of work on all communicators of a rank.
var uses = map[string]func(context.Context, []*mpicx.Comm) error{
	"sums": func(ctx context.Context, own []*mpicx.Comm) error {
		for _, c := range own {
			if err := mpicx.Allreduce(c, []int{1}, []int{0}, mpicx.Sum).Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	},
	"signals": func(ctx context.Context, own []*mpicx.Comm) error {
		for range 2 {
			for _, c := range own {
				err := c.Try(ctx, func(ctx context.Context) error {
					if c.Rank() == c.Size()-1 {
						return errors.New("signalled")
					}
					return c.Barrier().Wait(ctx)
				})
				if _, ok := errors.AsType[*mpicx.PropagatedError](err); !ok {
					return err
				}
			}
		}
		return nil
	},
}

// byGround has the ground repaired alone, and the others made anew.
func byGround(l layout, use func(context.Context, []*mpicx.Comm) error) program {
	return propagating(func(ctx context.Context, ground *mpicx.Comm) error {
		own, err := l(ctx, ground)
		if err != nil {
			return err
		}
		if err := use(ctx, own); err != nil {
			return err
		}
		return ground.Barrier().Wait(ctx)
	})
}

// each has them repaired, and the ground only if that has an error of its own. An error of one
// breaks all of this rank's: so nobody waits on one of them for who repairs another. And a rank
// begins all repairs before it waits for one: so their order, which differs, does not matter.
func each(l layout, use func(context.Context, []*mpicx.Comm) error) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		return propagating(func(ctx context.Context, ground *mpicx.Comm) error {
			own, err := l(ctx, ground)
			if err != nil {
				return err
			}
			for step := 0; step < 2; {
				if err := guarded(ctx, own, func(ctx context.Context) error { return use(ctx, own) }); err == nil {
					step++
					continue
				}
				for _, c := range own {
					told := c.Barrier().Wait(ctx)
					for isPropagated(told) { // older
						told = c.Barrier().Wait(ctx)
					}
					v, ok := errors.AsType[*mpicx.CommCorruptedError](told)
					if !ok || !v.Of(c) { // the ground's
						return told
					}
					o.dead[c.String()] = fmt.Sprint(v.Dead)
				}
				if own, err = shrunk(ctx, own, o); err != nil {
					return err
				}
			}
			return nil
		})(ctx, world, o)
	}
}

// guarded is Guard of several.
func guarded(ctx context.Context, all []*mpicx.Comm, fn func(context.Context) error) error {
	if len(all) == 0 {
		return fn(ctx)
	}
	return all[0].Guard(ctx, func(ctx context.Context) error { return guarded(ctx, all[1:], fn) })
}

// eachRevoked is each under ErrorsReturn.
func eachRevoked(l layout, use func(context.Context, []*mpicx.Comm) error) program {
	return func(ctx context.Context, ground *mpicx.Comm, o *outcome) error {
		ground.SetErrhandler(mpicx.ErrorsReturn)
		var own []*mpicx.Comm
		for have := 0; have == 0; {
			var err error
			if own, err = l(ctx, ground); err == nil {
				have = 1
			} else if err := ground.Revoke(ctx); err != nil { // who waits for this rank in the next Split
				return err
			}
			if have, err = ground.Agree(have).Get(ctx); err != nil { // somebody has died, which all are told
				have = 0
			}
			if have == 0 {
				if ground, err = ground.Shrink().Get(ctx); err != nil {
					return fmt.Errorf("Shrink of the ground: %w", err)
				}
			}
		}
		for step := 0; step < 2; {
			err := use(ctx, own)
			if err == nil {
				step++
				continue
			}
			if !expected(err) && !isPropagated(err) {
				return err
			}
			for _, c := range own {
				if err := c.Revoke(ctx); err != nil {
					return err
				}
			}
			if own, err = shrunk(ctx, own, o); err != nil {
				return err
			}
		}
		o.comm = ground.String()
		return nil
	}
}

// shrunk returns what is left of broken communicators. Ranks repair them in opposite orders.
func shrunk(ctx context.Context, own []*mpicx.Comm, o *outcome) ([]*mpicx.Comm, error) {
	place := func(i int) int { return i }
	if own[0].Rank()%2 > 0 {
		place = func(i int) int { return len(own) - 1 - i }
	}
	repairs := make([]*future.Future[*mpicx.Comm], len(own))
	for i := range own {
		repairs[place(i)] = own[place(i)].Shrink()
	}
	small := make([]*mpicx.Comm, len(own))
	for i := range own {
		c, err := repairs[place(i)].Get(ctx)
		for isPropagated(err) || corruptedError(err) && !isAbove(err, own[place(i)]) { // a signal of a rank that did not know
			c, err = own[place(i)].Shrink().Get(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("Shrink of %v: %w", own[place(i)], err)
		}
		o.size[c.String()] = c.Size()
		small[place(i)] = c
	}
	return small, nil
}

// levels has an error repaired where it is: of pairs, of halves, of all. All leave a level
// together, or none does.
func levels(ctx context.Context, world *mpicx.Comm, o *outcome) error {
	if err := level(ctx, world, o, 2); err != nil {
		return err
	}
	o.comm = "done"
	return nil
}

// level returns nil, or an error that is not of c, which ends it.
func level(ctx context.Context, c *mpicx.Comm, o *outcome, below int) error {
	for {
		err := c.Guard(ctx, func(ctx context.Context) error {
			if below > 0 {
				half, err := c.Split(2*c.Rank()/c.Size(), 0).Get(ctx)
				if err == nil {
					err = level(ctx, half, o, below-1)
				}
				if err != nil {
					return err
				}
			}
			return mpicx.Allreduce(c, []int{1}, []int{0}, mpicx.Sum).Wait(ctx)
		})
		if isAbove(err, c) {
			return err
		}
		flag, aerr := c.Agree(btoi(err == nil)).Get(ctx)
		for !isAbove(aerr, c) && corruptedError(aerr) { // told
			flag, aerr = c.Agree(0).Get(ctx)
		}
		switch {
		case isAbove(aerr, c):
			return aerr
		case aerr == nil && flag == 1:
			return nil
		}
		next, err := c.Shrink().Get(ctx)
		if err != nil {
			return err
		}
		o.size[next.String()] = next.Size()
		c = next
	}
}

func corruptedError(err error) bool { return errors.As(err, new(*mpicx.CommCorruptedError)) }

func isPropagated(err error) bool { return errors.As(err, new(*mpicx.PropagatedError)) }

func isAbove(err error, c *mpicx.Comm) bool {
	v, ok := errors.AsType[*mpicx.CommCorruptedError](err)
	return ok && !v.Of(c)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func families() map[string]program {
	programs := map[string]program{"levels": levels}
	for where, l := range layouts {
		for what, use := range uses {
			programs["by ground/"+where+"/"+what] = byGround(l, use)
			programs["each/"+where+"/"+what] = each(l, use)
			programs["each revoked/"+where+"/"+what] = eachRevoked(l, use)
		}
	}
	return programs
}

// D1, D2, H5: any rank may die at any moment. No rank hangs, and each communicator has the same
// outcome at all its members.
func TestFamilies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for name, run := range families() {
		for n := 4; n <= 6; n += 2 {
			for r := range n {
				t.Run(fmt.Sprintf("%s/%d/%d", name, n, r), func(t *testing.T) {
					t.Parallel()
					if testing.Short() && (r+n+len(name))%4 > 0 {
						t.Skip("one in four")
					}
					exhaust(t, n, r, false, run)
				})
			}
		}
		t.Run(name+"/random", func(t *testing.T) {
			t.Parallel()
			for seed := range 30 {
				survive(t, 7, fmt.Sprintf("kill any 3 random seed %d of 40", seed), false, run)
			}
		})
	}
}
