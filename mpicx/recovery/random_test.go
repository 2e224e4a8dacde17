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
	rnd       *rand.Rand
	share     int // one place in share
	remaining int
	kinds     []fault
	raised    []string
	lost      bool
}

func (f *faults) at(ctx context.Context, world, c *mpicx.Comm) error {
	for range f.rnd.IntN(4) {
		runtime.Gosched()
	}
	if f.remaining == 0 || f.rnd.IntN(f.share) > 0 {
		return nil
	}
	f.remaining--
	err := fmt.Errorf("error %d of %d, incarnation %d", f.remaining, world.Rank(), world.Incarnation())
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

// A program is what all ranks do in a run: work in which any rank fails anywhere, often while others
// recover. If it is nested, each half of the ranks does it on an inner level as well.
type program struct {
	plans  []*faults // of the ranks
	rescue faults    // of a rank that joins, without its numbers
	seed   uint64    // of these
	nested bool
	opts   []recovery.Option
}

func (p *program) run(ctx context.Context, world *mpicx.Comm, rs *records) (err error) {
	f := p.plans[world.Rank()]
	if world.Incarnation() > 0 {
		own := p.rescue
		own.rnd, f = rand.New(rand.NewPCG(p.seed, uint64(world.Rank()))), &own
	}
	work := func(ctx context.Context, a *recovery.Attempt) error {
		for range 2 {
			if err := f.at(ctx, world, a.Comm); err != nil {
				return err
			}
			mpicx.Throw(ring(ctx, a.Comm))
		}
		return f.at(ctx, world, a.Comm)
	}
	fn := func(ctx context.Context, a *recovery.Attempt) error {
		if p.nested {
			part := a.Comm.Split(a.Comm.Rank()%2, 0).MustGet(ctx)
			mpicx.Throw(recovery.Run(ctx, part, work, p.opts...))
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
		err = rs.run(fn, p.opts...)(ctx, world)
	}()
	<-done
	return err
}

// TestRandomFaults holds what the ranks have seen of random faults against what they did.
func TestRandomFaults(t *testing.T) {
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("MPICX_SEED"), "1"), 10, 64)
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(seed, 0))
	runs := 3000
	if testing.Short() {
		runs = 300
	}
	most, recoveries := 0, 0
	for i := range runs {
		n, spares := 1+rnd.IntN(7), 0
		kinds := []fault{throws, returns, signals}
		var opts []recovery.Option
		if mpicx.Backend == "ulfm" && rnd.IntN(3) > 0 {
			kinds, opts = append(kinds, panics, exits, dies), append(opts, recovery.Shrink())
			if spares = rnd.IntN(4); spares > 0 {
				opts = []recovery.Option{recovery.Replace(), recovery.ElseShrink()}
			}
		}
		p := &program{
			plans: make([]*faults, n), rescue: faults{share: 6, kinds: kinds, remaining: 1}, seed: rnd.Uint64(),
			nested: rnd.IntN(2) == 0, opts: append(opts, recovery.MaxAttempts(1000)),
		}
		for r := range p.plans {
			p.plans[r] = &faults{rnd: rand.New(rand.NewPCG(rnd.Uint64(), 0)), share: 1 + rnd.IntN(12), remaining: rnd.IntN(4), kinds: kinds}
		}
		var rs records
		mpicxtest.RunWith(t, n, func(ctx context.Context, world *mpicx.Comm) error { return p.run(ctx, world, &rs) }, mpicx.WithSpares(spares))
		last := p.check(t, &rs, spares)
		most, recoveries = max(most, last.N), recoveries+last.N
		require.False(t, t.Failed(), "run %d", i)
	}
	require.Greater(t, recoveries, runs, "hardly a run recovered")
	t.Logf("%d recoveries, at most %d in a run", recoveries, most)
}

// check checks that each error was told once, and which ranks are lost. It returns the last attempt.
func (p *program) check(t *testing.T, rs *records, spares int) (last recovery.Attempt) {
	if end := rs.agree(t); end != nil {
		require.NoError(t, end.err)
		last = end.last()
	}
	told := make(map[string]int)
	for _, cause := range last.Causes {
		if p, ok := errors.AsType[*mpicx.PropagatedError](cause); ok {
			for _, f := range p.Failures {
				told[f.Message]++
			}
		}
	}
	var lost []int
	for r, f := range p.plans {
		require.Equal(t, f.lost, !rs.of(r).returned, "rank %d", r)
		if f.lost {
			lost = append(lost, r)
		}
	}
	for r, f := range p.plans {
		for _, e := range f.raised {
			if len(lost) == 0 && spares == 0 && !p.nested { // else an inner level may have handled it
				require.Equal(t, 1, told[e], "%s, causes %v", e, last.Causes)
			}
			require.LessOrEqual(t, told[e], 1, "%s of rank %d, causes %v", e, r, last.Causes)
		}
	}
	if spares == 0 && len(lost) < len(p.plans) {
		require.ElementsMatch(t, lost, last.Gone)
		require.Equal(t, len(p.plans)-len(lost), last.Comm.Size())
		require.True(t, slices.IsSorted(last.Gone))
	}
	return last
}
