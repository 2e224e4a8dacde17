package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
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
	for _, e := range from.raised {
		s.Raised = append(s.Raised, raised{e.rank, e.place})
	}
	s.Died = from.dead
	for _, v := range from.verdicts {
		s.Verdicts = append(s.Verdicts, v.Failures)
		for _, f := range v.Failures {
			if f.Rank != from.world.Rank() {
				continue
			}
			for _, e := range from.raised {
				if e.ErrorCode() == f.Code && !errors.Is(v, e) { // the origin finds the very cause
					s.Lost++
				}
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
			for _, f := range failures {
				e := raised{f.Rank, f.Code - 100}
				require.Contains(t, count, e)
				require.Equal(t, (&placeError{e.Rank, e.Place}).Error(), f.Message)
				require.Contains(t, f.Origin, "_test.go:")
				if r == longest {
					count[e]++
				}
			}
		}
	}
	first := ranks[living[0]]
	for _, r := range living {
		s := ranks[r]
		require.Equal(t, corrupt, s.Corrupted, "rank %d, faults %v", r, faults)
		if !corrupt {
			continue
		}
		require.Equal(t, texts(first.Unwinders), texts(s.Unwinders), "rank %d and %d, faults %v", r, living[0], faults)
		require.Equal(t, first.Dead, s.Dead, "rank %d and %d, faults %v", r, living[0], faults)
		require.NotEmpty(t, len(s.Unwinders)+len(s.Dead))
		require.Subset(t, dead, s.Dead)
		require.Equal(t, first.Shrunk, s.Shrunk, "size after Shrink, faults %v", faults)
		if len(s.Unwinders) == 0 {
			require.Equal(t, len(living), s.Shrunk, "all have died before anybody can shrink, faults %v", faults)
		}
		for _, f := range s.Unwinders {
			require.True(t, ranks[f.Rank].Unwound, "rank %d unwound, says %v; faults %v", f.Rank, s.Unwinders, faults)
		}
	}
	for e, times := range count {
		if corrupt {
			require.LessOrEqual(t, times, 1, "%v, faults %v", e, faults)
		} else {
			require.Equal(t, 1, times, "%v, faults %v", e, faults)
		}
	}

	if dead != nil {
		return
	}
	// Nobody can hear of another's error before place 0: all are in the first
	// verdict (P2), with what others raise at later places before they hear of it.
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
		thrown, failures = unwinding, first.Unwinders
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
			for n := 1; n <= most && len(fitting(n)) > 0; n++ {
				for ranks, where := range product(numbers(1<<n-1, 1), indices(1<<places)) {
					play(t, faultsOf(n, func(r, p int) fault {
						if ranks>>r&1 == 0 || where>>p&1 == 0 {
							return 0
						}
						return kind
					}))
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

// TestOneFault has one rank throw at one place, at every place of every rank, so
// often that it finds what one order of events in thousands does:
// go test -run TestOneFault -count 200.
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
	if mpicx.Backend != "ulfm" {
		t.Skip("the black channel sees nobody die")
	}
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
			if err == nil {
				continue
			}
			if !corrupted(err) {
				return err
			}
			small := comm.Shrink().MustGet(ctx)
			comm, step = small, 0
		}
		if turn != n-1 {
			return fmt.Errorf("rank %d is left, expected %d", world.Rank(), order[n-1])
		}
		return exchange(ctx, comm, 0)
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

// A fault is what a rank does at a place of the program.
type fault int

const (
	throwFault  fault = 1 + iota // throws an error
	signalFault                  // calls SignalError
	panicFault                   // these two unwind, and corrupt
	goexitFault
	dieFault // dies; only where the backend sees that
)

// places is how many places the program has where a fault can be.
const places = 6

// placeError is the error thrown at a place.
type placeError struct{ rank, place int }

func (e *placeError) Error() string {
	return fmt.Sprintf("thrown at place %d of rank %d", e.place, e.rank)
}

func (e *placeError) ErrorCode() int { return 100 + e.place }

// subject is one rank of the program, with its faults.
type subject struct {
	world    *mpicx.Comm
	faults   [places]fault
	raised   []*placeError // in order
	verdicts []*mpicx.PropagatedError
	dead     bool
}

// at is a place.
func (s *subject) at(ctx context.Context, place int) {
	for range rand.IntN(3) {
		runtime.Gosched()
	}
	f := s.faults[place]
	if f == 0 {
		return
	}
	s.faults[place] = 0
	e := &placeError{s.world.Rank(), place}
	s.raised = append(s.raised, e)
	switch f {
	case throwFault:
		mpicx.Throw(e)
	case signalFault:
		mpicx.Throw(s.world.Signal(ctx, e))
	case panicFault:
		panic(e)
	case goexitFault:
		runtime.Goexit()
	case dieFault:
		s.dead = true
		mpicxtest.Die(s.world)
	}
}

// level notes how a Try ended and says whether it succeeded.
func (s *subject) level(err error) (ok bool, fatal error) {
	if err == nil {
		return true, nil
	}
	p, is := errors.AsType[*mpicx.PropagatedError](err)
	if !is {
		return false, err
	}
	s.verdicts = append(s.verdicts, p)
	return false, nil
}

// program has point-to-point messages, collectives and Try blocks inside of one
// another, each of which handles its errors and goes on. It repeats until all
// ranks get through.
func (s *subject) program(ctx context.Context) error {
	for {
		err := s.world.TryAll(ctx, func(ctx context.Context) error {
			for _, inner := range s.inner() {
				if _, fatal := s.level(s.world.TryAll(ctx, inner)); fatal != nil {
					return fatal
				}
			}
			s.at(ctx, 4)
			s.world.Barrier().MustWait(ctx)
			s.at(ctx, 5)
			return nil
		})
		if ok, fatal := s.level(err); ok || fatal != nil {
			return fatal
		}
	}
}

func corrupted(err error) bool {
	_, is := errors.AsType[*mpicx.CommCorruptedError](err)
	return is
}

// inner are the inner Try blocks.
func (s *subject) inner() []func(context.Context) error {
	n, me := s.world.Size(), s.world.Rank()
	return []func(context.Context) error{
		func(ctx context.Context) error { // a ring, in which messages wait for one another
			s.at(ctx, 0)
			got := []int{-1}
			recv := mpicx.Recv(s.world, got, (me+n-1)%n, 1)
			send := mpicx.Ssend(s.world, []int{me}, (me+1)%n, 1)
			if _, err := recv.Get(ctx); err != nil {
				return err
			}
			s.at(ctx, 1)
			if got[0] != (me+n-1)%n {
				return fmt.Errorf("rank %d: ring brought %d", me, got[0])
			}
			send.MustWait(ctx)
			return nil
		},
		func(ctx context.Context) error {
			s.at(ctx, 2)
			sum := []int{0}
			if err := mpicx.Allreduce(s.world, []int{1}, sum, mpicx.Sum).Wait(ctx); err != nil {
				return err
			}
			if sum[0] != n {
				return fmt.Errorf("rank %d: sum is %d", me, sum[0])
			}
			s.at(ctx, 3)
			return nil
		},
	}
}

// exchange checks that every rank reaches every other, by messages short and
// long, and all together; nothing from before may come.
func exchange(ctx context.Context, c *mpicx.Comm, round int) error {
	n, me := c.Size(), c.Rank()
	value := func(from, to int) int { return 1000000*round + 1000*from + to }
	for _, length := range []int{1, 1000} {
		recv := make([][]int, n)
		var waits []future.Waiter
		for r := range n {
			recv[r] = make([]int, length)
			waits = append(waits, mpicx.Recv(c, recv[r], mpicx.AnySource, 100+r))
		}
		for r := range n {
			waits = append(waits, mpicx.Send(c, slices.Repeat([]int{value(me, r)}, length), r, 100+me))
		}
		if err := future.WaitAll(ctx, waits...); err != nil {
			return err
		}
		for r, got := range recv {
			if err := want(fmt.Sprint("from rank ", r), got, func(int) int { return value(r, me) }); err != nil {
				return err
			}
		}
	}
	all := make([]int, n)
	if err := mpicx.Allgather(c, []int{me}, all).Wait(ctx); err != nil {
		return err
	}
	if err := want("Allgather", all, func(r int) int { return r }); err != nil {
		return err
	}
	done, err := mpicx.Recv(c, make([]int, 1), mpicx.AnySource, mpicx.AnyTag).Test()
	if done || err != nil {
		return fmt.Errorf("rank %d: a message of before is there still (%v)", me, err)
	}
	return c.Barrier().Wait(ctx)
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
		var final error
		for range 9 { // a rank that unwound may have errors of before to report
			if final = world.Barrier().Wait(ctx); final == nil || corrupted(final) {
				break
			}
		}
		if again := world.Barrier().Wait(ctx); again != final {
			return fmt.Errorf("it is final, but %v follows %v", again, final)
		}
		c, is := errors.AsType[*mpicx.CommCorruptedError](final)
		if !is {
			return fmt.Errorf("got %v, expected it to be corrupted", final)
		}
		seen[me].Corrupted, seen[me].Unwinders, seen[me].Dead = true, c.Failures, c.Dead
		if len(c.Failures) > 0 || len(c.Dead) == 0 {
			return nil
		}
		small, err := world.Shrink().Get(ctx) // all who live are here
		if err != nil {
			return err
		}
		seen[me].Shrunk = small.Size()
		return allowed(exchange(ctx, small, 0), func(err error) bool { return err == nil || corrupted(err) })
	})
	require.False(t, t.Failed(), "faults of ranks × places: %v", faults)
	judge(t, faults, gather(t, seen))
}
