package recovery_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// A fault is what a rank does at a place of its program.
type fault int

const (
	none fault = iota
	throws
	returns
	signals
	panics // these unwind: the rank is lost
	exits
	dies
)

// faults holds the faults of a rank, each of which happens once, and records them.
type faults struct {
	rnd    *rand.Rand
	share  int // one place in so many
	left   int
	kinds  []fault
	raised []string
	lost   bool
}

func (f *faults) at(ctx context.Context, world, c *mpicx.Comm) error {
	for range f.rnd.IntN(4) {
		runtime.Gosched()
	}
	if f.left == 0 || f.rnd.IntN(f.share) > 0 {
		return nil
	}
	f.left--
	err := fmt.Errorf("error %d of %d, incarnation %d", f.left, world.Rank(), world.Incarnation())
	kind := f.kinds[f.rnd.IntN(len(f.kinds))]
	if kind < panics {
		f.raised = append(f.raised, err.Error())
	} else {
		f.lost = true
	}
	switch kind {
	case throws:
		mpicx.Throw(err)
	case signals:
		return c.Signal(ctx, err)
	case panics:
		panic(err)
	case exits:
		runtime.Goexit()
	case dies:
		mpicxtest.Die(world)
	}
	return err
}

// seeded returns a source of random numbers, the same in every run without MPICX_SEED.
func seeded(t *testing.T) *rand.Rand {
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("MPICX_SEED"), "1"), 10, 64)
	require.NoError(t, err)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestRandomFaults runs a program in which any rank fails anywhere, often while others
// recover, and holds what the ranks have seen against what they did.
func TestRandomFaults(t *testing.T) {
	rnd := seeded(t)
	runs := 3000
	if testing.Short() {
		runs = 300
	}
	most, recoveries := 0, 0
	for i := range runs {
		n := 1 + rnd.IntN(7)
		kinds := []fault{throws, returns, signals}
		var opts []recovery.Option
		spares := 0
		if mpicx.Backend == "ulfm" && rnd.IntN(3) > 0 {
			kinds, opts = append(kinds, panics, exits, dies), append(opts, recovery.Shrink())
			if spares = rnd.IntN(4); spares > 0 {
				opts = []recovery.Option{recovery.Replace(), recovery.ElseShrink()}
			}
		}
		opts = append(opts, recovery.MaxAttempts(1000))
		seed := rnd.Uint64()
		plans, nested := make([]*faults, n), rnd.IntN(2) == 0
		var rs records
		for r := range plans {
			plans[r] = &faults{rnd: rand.New(rand.NewPCG(rnd.Uint64(), 0)), share: 1 + rnd.IntN(12), left: rnd.IntN(4), kinds: kinds}
		}
		mpicxtest.RunWith(t, n, func(ctx context.Context, world *mpicx.Comm) (err error) {
			f := plans[world.Rank()]
			if world.Incarnation() > 0 {
				f = &faults{rnd: rand.New(rand.NewPCG(seed, uint64(world.Rank()))), share: 6, kinds: kinds, left: 1}
			}
			work := func(ctx context.Context, a *recovery.Attempt) error {
				for range 2 {
					if err := f.at(ctx, world, a.Comm); err != nil {
						return err
					}
					if err := ring(ctx, a.Comm); err != nil {
						return err
					}
				}
				return f.at(ctx, world, a.Comm)
			}
			fn := func(ctx context.Context, a *recovery.Attempt) error {
				if nested {
					part := a.Comm.Split(a.Comm.Rank()%2, 0).MustGet(ctx)
					if err := recovery.Run(ctx, part, work, opts...); err != nil {
						return err
					}
				}
				return work(ctx, a)
			}
			done := make(chan struct{})
			go func() { // the rank itself returns nil, if this unwinds
				defer close(done)
				defer func() {
					if v := recover(); v != nil && !f.lost {
						panic(v)
					}
				}()
				err = rs.run(fn, opts...)(ctx, world)
			}()
			<-done
			return err
		}, mpicx.WithSpares(spares))
		var last recovery.Attempt
		if end := rs.agree(t); end != nil {
			require.NoError(t, end.err)
			last = end.last()
		}
		told := make(map[string]int)
		var lost []int
		for r, f := range plans {
			require.Equal(t, f.lost, !rs.of(r).returned, "rank %d", r)
			if f.lost {
				lost = append(lost, r)
			}
		}
		for _, cause := range last.Causes {
			if p, ok := errors.AsType[*mpicx.PropagatedError](cause); ok {
				for _, f := range p.Failures {
					told[f.Message]++
				}
			}
		}
		for r, f := range plans {
			for _, e := range f.raised {
				if len(lost) == 0 && spares == 0 && !nested { // else an inner level may have handled it
					require.Equal(t, 1, told[e], "%s, causes %v", e, last.Causes)
				}
				require.LessOrEqual(t, told[e], 1, "%s of rank %d, causes %v", e, r, last.Causes)
			}
		}
		if spares == 0 && len(lost) < n {
			require.ElementsMatch(t, lost, last.Gone, "run %d", i)
			require.Equal(t, n-len(lost), last.Comm.Size())
			require.True(t, slices.IsSorted(last.Gone))
		}
		most, recoveries = max(most, last.N), recoveries+last.N
		if t.Failed() {
			t.Fatalf("run %d", i)
		}
	}
	require.Greater(t, recoveries, runs, "hardly a run recovered")
	t.Logf("%d recoveries, at most %d in a run", recoveries, most)
}
