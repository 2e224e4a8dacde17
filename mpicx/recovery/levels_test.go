package recovery_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// disturbed counts what a rank was disturbed by.
type disturbed struct{ outer, inner, itself int }

// Three levels, as in the use cases of the paper (004, section I), with pairs of ranks as
// sub-communicators. Whom an error disturbs depends on the level that handles it.
func TestWhoIsDisturbed(t *testing.T) {
	const n = 6
	none, itself, pair, all := disturbed{}, disturbed{itself: 1}, disturbed{inner: 1}, disturbed{outer: 1}
	for name, c := range map[string]struct {
		fails      func(level string, outer, inner int, itself bool) bool // at rank 2
		rank2, own disturbed                                              // own: rank 3, in the same pair
		others     disturbed
	}{
		"use case 1": {
			func(level string, _, _ int, first bool) bool { return level == "itself" && first },
			itself, none, none,
		},
		"use case 2": {
			func(level string, _, inner int, _ bool) bool { return level == "inner" && inner == 0 },
			pair, pair, none,
		},
		"use case 2, given up": {
			func(level string, outer, _ int, _ bool) bool { return level == "inner" && outer == 0 },
			disturbed{outer: 1, inner: 2}, disturbed{outer: 1, inner: 2}, all,
		},
		"use case 3": {
			func(level string, outer, _ int, _ bool) bool { return level == "outer" && outer == 0 },
			all, all, all,
		},
	} {
		t.Run(name, func(t *testing.T) {
			counts := make([]disturbed, n)
			mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
				me := world.Rank()
				return disturb(ctx, world, &counts[me], func(level string, outer, inner int, first bool) bool {
					return me == 2 && c.fails(level, outer, inner, first)
				})
			})
			for r, got := range counts {
				want := c.others
				switch r {
				case 2:
					want = c.rank2
				case 3:
					want = c.own
				}
				require.Equal(t, want, got, "rank %d", r)
			}
		})
	}
}

// disturb is the program of a rank with three levels, of which fails says whether they fail.
func disturb(ctx context.Context, world *mpicx.Comm, count *disturbed, fails func(string, int, int, bool) bool) error {
	me := world.Rank()
	return recovery.Run(ctx, world, func(ctx context.Context, o *recovery.Attempt) error {
		if o.N > 0 {
			count.outer++
		}
		two := o.Comm.Split(me/2, 0).MustGet(ctx)
		err := recovery.Run(ctx, two, func(ctx context.Context, i *recovery.Attempt) error {
			if i.N > 0 {
				count.inner++
			}
			for first := true; fails("itself", o.N, i.N, first); first = false {
				count.itself++
			}
			if fails("inner", o.N, i.N, true) {
				return errors.New("inner")
			}
			return ring(ctx, i.Comm)
		}, recovery.MaxAttempts(2))
		if err != nil {
			if o.N == 0 && me/2 == 1 {
				count.inner++ // that it has failed again
			}
			return err
		}
		if fails("outer", o.N, 0, true) {
			return errors.New("outer")
		}
		return ring(ctx, o.Comm)
	})
}

// An inner level shrinks when a rank dies. No other rank is told until the outer one needs it.
func TestInnerShrink(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const n = 6
	var rs records
	inner := make([]int, n)
	killed := mpicxtest.RunFaults(t, n, "", rs.run(func(ctx context.Context, a *recovery.Attempt) error {
		me := a.Place(a.Comm.Rank())
		part := a.Comm.Split(me/3, 0).MustGet(ctx)
		// Rank 1 dies when the other part needs no more of it on the outer communicator.
		if a.N == 0 && me >= 3 {
			mpicx.Send(a.Comm, []int{me}, 1, me).MustWait(ctx)
		} else if a.N == 0 && me == 1 {
			for other := 3; other < n; other++ {
				mpicx.Recv(a.Comm, []int{0}, other, other).MustWait(ctx)
			}
		}
		err := recovery.Run(ctx, part, func(ctx context.Context, i *recovery.Attempt) error {
			inner[me] = max(inner[me], i.N)
			if a.N == 0 && me == 1 {
				mpicxtest.Die(a.Comm)
			}
			return ring(ctx, i.Comm)
		}, recovery.Replace(), recovery.ElseShrink())
		if err != nil {
			return err
		}
		if a.N > 0 {
			return ring(ctx, a.Comm)
		}
		// The others wait for word of the recovery, and are not told otherwise.
		if me >= 3 {
			return mpicx.Recv(a.Comm, []int{0}, 0, 7).Wait(ctx)
		}
		for other := 3; me == 0 && other < n; other++ {
			mpicx.Send(a.Comm, []int{me}, other, 7).MustWait(ctx)
		}
		return nil
	}, recovery.Shrink()))
	require.Empty(t, killed) // by plan
	end := rs.agree(t)
	require.NoError(t, end.err)
	require.Equal(t, []int{0, 1}, end.ns())
	require.Equal(t, []int{1}, end.last().Gone)
	require.Equal(t, []int{1, 0, 1, 0, 0, 0}, inner, "%v", end.last().Causes)
}

// An error of the outer level ends the inner one, and leaves its communicator whole, even in
// the middle of a recovery there.
func TestOuterErrorEndsInner(t *testing.T) {
	const n = 4
	for repetition := range 50 {
		var rs records
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			me := world.Rank()
			two := world.Split(me/2, 0).MustGet(ctx) // before Run, and used in all attempts
			return rs.run(func(ctx context.Context, o *recovery.Attempt) error {
				err := recovery.Run(ctx, two, func(ctx context.Context, i *recovery.Attempt) error {
					if o.N > 0 {
						return ring(ctx, i.Comm)
					}
					return failsThere(ctx, o.Comm, me == 3, i.N < 3 && me == repetition%3)
				})
				if o.N == 0 && err == nil {
					return errors.New("the inner level has not ended by the outer error")
				}
				return err
			})(ctx, world)
		})
		end := rs.agree(t)
		require.NoError(t, end.err)
		require.ErrorContains(t, end.last().Causes[0], "rank 3: outer")
		require.Equal(t, []int{0, 1}, end.ns(), "%v", end.last().Causes)
	}
}

// failsThere raises an error on the outer communicator, or returns one, or waits for one.
func failsThere(ctx context.Context, outer *mpicx.Comm, raises, returns bool) error {
	switch {
	case raises:
		return outer.Signal(ctx, errors.New("outer"))
	case returns:
		return errors.New("inner")
	}
	return outer.Barrier().Wait(ctx)
}
