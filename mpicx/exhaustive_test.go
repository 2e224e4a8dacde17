package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// seen is what one rank saw, as another process can be told.
type seen struct {
	Raised    []raised
	Verdicts  [][]mpicx.Failure
	Unwound   bool // by a panic or Goexit of its own
	Died      bool
	Corrupted bool
	Unwinders []mpicx.Failure // what the corruption says
	Dead      []int
	Shrunk    int // the size of what Shrink made
	Lost      int // verdicts that do not have this rank's own error as a cause, but should
}

// raised is a placeError that others know.
type raised struct{ Rank, Place int }

func (s *seen) add(from *subject) {
	s.Died = from.dead
	for _, e := range from.raised {
		s.Raised = append(s.Raised, raised{e.rank, e.place})
	}
	for _, v := range from.verdicts {
		s.Verdicts = append(s.Verdicts, v.Failures)
		for f, e := range product(v.Failures, from.raised) {
			if f.Rank == from.world.Rank() && e.ErrorCode() == f.Code && !errors.Is(v, e) { // the origin finds the very cause
				s.Lost++
			}
		}
	}
}

// judge checks what the ranks have seen of each other.
func judge(t *testing.T, faults [][places]fault, ranks []seen) {
	t.Helper()
	count := make(map[raised]int) // how often it is in a verdict
	var dead, living []int
	corrupt := false
	for r, s := range ranks {
		for _, e := range s.Raised {
			count[e] = 0
		}
		require.Zero(t, s.Lost, "causes that rank %d does not find, faults %v", r, faults)
		corrupt = corrupt || s.Unwound || s.Died
		if s.Died {
			dead = append(dead, r)
		} else {
			living = append(living, r)
		}
	}
	if len(living) == 0 {
		return
	}

	// The verdicts of errors are the same at all ranks, each failure was raised,
	// and no error is in two of them.
	longest := slices.MaxFunc(living, func(a, b int) int { return len(ranks[a].Verdicts) - len(ranks[b].Verdicts) })
	verdicts := ranks[longest].Verdicts
	for _, r := range living {
		s := ranks[r]
		if !s.Unwound { // else its program may have been gone when the last came
			require.Len(t, s.Verdicts, len(verdicts), "verdicts of rank %d and %d: %v %v, faults %v",
				r, longest, s.Verdicts, verdicts, faults)
		}
		for i, failures := range s.Verdicts {
			require.Equal(t, texts(verdicts[i]), texts(failures), "verdict %d of rank %d and %d, faults %v", i, r, longest, faults)
		}
	}
	for _, f := range slices.Concat(verdicts...) {
		e := raised{f.Rank, f.Code - 100}
		require.Contains(t, count, e)
		require.Equal(t, (&placeError{e.Rank, e.Place}).Error(), f.Message)
		require.Contains(t, f.Origin, "_test.go:")
		count[e]++
	}
	for e, times := range count {
		require.True(t, times == 1 || corrupt && times == 0, "%v, %d times, faults %v", e, times, faults)
	}
	for _, r := range living {
		judgeCorruption(t, faults, ranks, ranks[r], ranks[living[0]], corrupt, dead)
	}
	if dead == nil {
		judgeFirst(t, faults, verdicts, ranks[0].Unwinders)
	}
}

// judgeCorruption checks what a living rank has seen of the end: the same as the first one.
func judgeCorruption(t *testing.T, faults [][places]fault, ranks []seen, s, first seen, corrupt bool, dead []int) {
	require.Equal(t, corrupt, s.Corrupted, "faults %v", faults)
	if !corrupt {
		return
	}
	require.Equal(t, texts(first.Unwinders), texts(s.Unwinders), "faults %v", faults)
	require.Equal(t, first.Dead, s.Dead, "faults %v", faults)
	require.NotEmpty(t, len(s.Unwinders)+len(s.Dead))
	require.Subset(t, dead, s.Dead)
	require.Equal(t, first.Shrunk, s.Shrunk, "size after Shrink, faults %v", faults)
	if len(s.Unwinders) == 0 {
		require.Equal(t, len(ranks)-len(dead), s.Shrunk, "all have died before anybody can shrink, faults %v", faults)
	}
	for _, f := range s.Unwinders {
		require.True(t, ranks[f.Rank].Unwound, "rank %d unwound, says %v; faults %v", f.Rank, s.Unwinders, faults)
	}
}

// judgeFirst checks the first verdict. Nobody can hear of another's error before place 0: all are
// in it (P2), with what others raise at later places before they hear of it.
func judgeFirst(t *testing.T, faults [][places]fault, verdicts [][]mpicx.Failure, unwinders []mpicx.Failure) {
	var thrown, unwinding []int
	later := false
	for r, f := range faults {
		switch {
		case f[0] > signalFault:
			unwinding = append(unwinding, r)
		case f[0] > 0:
			thrown = append(thrown, r)
		case f != [places]fault{}:
			later = true
		}
	}
	var failures []mpicx.Failure
	switch {
	case len(unwinding) > 0:
		require.Empty(t, verdicts, "a corruption wins (C2), faults %v", faults)
		thrown, failures = unwinding, unwinders
	case len(thrown) > 0 && len(verdicts) > 0:
		failures = verdicts[0]
	default:
		return // or all of it was lost to a corruption from a later place
	}
	var got []int
	for _, f := range failures {
		got = append(got, f.Rank)
	}
	if later {
		require.Subset(t, got, thrown, "ranks of the first verdict, faults %v", faults)
	} else {
		require.Equal(t, thrown, got, "ranks of the first verdict, faults %v", faults)
	}
}

// texts are failures, but for their times, which gob writes in another form.
func texts(failures []mpicx.Failure) (all []string) {
	for _, f := range failures {
		all = append(all, fmt.Sprint(f, f.Origin, f.Time.UnixNano()))
	}
	return all
}

// outcome calls fn and says how it left, if not by returning.
func outcome(fn func() error) (how any, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		how = "Goexit"
		defer func() {
			if v := recover(); v != nil {
				how = v
			}
		}()
		err = fn()
		how = nil
	}()
	<-done
	return how, err
}

// TestExhaustive runs the program with every set of places at every set of
// ranks, from 1 to 4 of them, for each kind of fault.
func TestExhaustive(t *testing.T) {
	kinds := map[string]fault{"throw": throwFault, "signal": signalFault, "panic": panicFault, "goexit": goexitFault}
	if mpicx.Backend == "ulfm" && processes == nil {
		kinds["die"] = dieFault
	}
	most := 4
	if testing.Short() {
		most = 3
	}
	for name, kind := range inOrder(kinds) {
		t.Run(name, func(t *testing.T) {
			if processes == nil {
				t.Parallel()
			}
			for _, n := range fitting(numbers(most, 1)...) {
				for ranks, where := range product(numbers(1<<n-1, 1), indices(1<<places)) {
					play(t, faultsOf(n, func(r, p int) fault { return kind * fault(ranks>>r&1*(where>>p&1)) }))
				}
			}
		})
	}
}

// faultsOf has n ranks, with these faults at their places.
func faultsOf(n int, at func(rank, place int) fault) [][places]fault {
	faults := make([][places]fault, n)
	for r, p := range product(indices(n), indices(places)) {
		faults[r][p] = at(r, p)
	}
	return faults
}

// oneFault has n ranks, and one fault.
func oneFault(n, rank, place int, kind fault) [][places]fault {
	faults := make([][places]fault, n)
	faults[rank][place] = kind
	return faults
}

// TestOneFault has one rank throw at one place, at every place of every rank, so often that it
// finds what one order of events in thousands does: go test -run TestOneFault -count 200.
func TestOneFault(t *testing.T) {
	for _, n := range fitting(2, 3, 4) {
		for r, p := range product(indices(n), indices(places)) {
			play(t, oneFault(n, r, p, throwFault))
		}
	}
}

// TestOneDeath has one of four ranks die, at each place. In a job of mpirun's each
// subtest needs its own.
func TestOneDeath(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for r, p := range product(indices(4), indices(places)) {
		t.Run(fmt.Sprintf("rank%dplace%d", r, p), func(t *testing.T) { play(t, oneFault(4, r, p, dieFault)) })
	}
}

// TestLastOneStanding has ranks die, at random, until one is left.
func TestLastOneStanding(t *testing.T) {
	rnd := seeded(t)
	const n = 6
	order := rnd.Perm(n)
	pauses := make([]int, n)
	for i := range pauses {
		pauses[i] = rnd.IntN(40)
	}
	propagating(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		turn := slices.Index(order, world.Rank())
		comm := world
		for step := 0; comm.Size() > 1; step++ {
			err := mpicx.Allreduce(comm, []int{1}, []int{0}, mpicx.Sum).Wait(ctx)
			if turn == n-comm.Size() && turn < n-1 && step >= pauses[turn] {
				mpicxtest.Die(world)
			}
			if err != nil {
				mpicx.Throw(isA[*mpicx.CommCorruptedError](err))
				comm, step = comm.Shrink().MustGet(ctx), 0
			}
		}
		return first(same("who is left", order[n-1:], []int{world.Rank()}), exchange(ctx, comm, 0))
	})
}

// TestRandomFaults is TestExhaustive with more ranks, and faults of all kinds
// mixed, as many as fit.
func TestRandomFaults(t *testing.T) {
	rnd := seeded(t)
	runs := 2000
	switch {
	case testing.Short():
		runs = 50
	case buildtags.Race:
		runs = 600
	}
	for i := range runs {
		n := 2 + rnd.IntN(14)
		if i%25 == 0 {
			n = 20 + rnd.IntN(60)
		}
		if len(fitting(n)) == 0 {
			n = 2 + n%(machine.Processes()-1)
		}
		most := 2
		if rnd.IntN(3) == 0 {
			most = 4
			if mpicx.Backend == "ulfm" && processes == nil {
				most = 5
			}
		}
		share := 1 + rnd.IntN(40)
		play(t, faultsOf(n, func(int, int) fault {
			if rnd.IntN(share) > 0 {
				return 0
			}
			return fault(1 + rnd.IntN(most))
		}))
	}
}

// play runs the program with faults, on ranks × places, and checks all that is
// determined. That it ends is checked by mpicxtest.Run.
func play(t *testing.T, faults [][places]fault) {
	t.Helper()
	n := len(faults)
	seen := make([]seen, n)
	for r, p := range product(indices(n), indices(places)) { // where it is a process it can't say so
		if faults[r][p] == dieFault {
			seen[r].Died, seen[r].Raised = true, append(seen[r].Raised, raised{r, p})
		}
	}
	mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		s := &subject{world: world, faults: faults[me]}
		seen[me].Died, seen[me].Raised = false, nil
		defer func() { seen[me].add(s) }()
		how, err := outcome(func() error { return world.Guard(ctx, s.program) })
		seen[me].Unwound = how != nil && !s.dead
		if how == nil && err == nil {
			return exchange(ctx, world, len(s.verdicts))
		}
		if how == nil && !corrupted(err) {
			return fmt.Errorf("Guard returned %w", err)
		}
		final := world.Barrier().Wait(ctx)
		for isTold(final) { // a rank that unwound may have errors of before to report
			final = world.Barrier().Wait(ctx)
		}
		c, is := errors.AsType[*mpicx.CommCorruptedError](final)
		if again := world.Barrier().Wait(ctx); !is || again != final {
			return fmt.Errorf("a corruption is final, but %v follows %v", again, final)
		}
		seen[me].Corrupted, seen[me].Unwinders, seen[me].Dead = true, c.Failures, c.Dead
		if len(c.Failures) > 0 || len(c.Dead) == 0 {
			return nil
		}
		small := world.Shrink().MustGet(ctx) // all who live are here
		seen[me].Shrunk = small.Size()
		return unlessCorrupted(exchange(ctx, small, 0))
	})
	require.False(t, t.Failed(), "faults of ranks × places: %v", faults)
	judge(t, faults, gather(t, seen))
}
