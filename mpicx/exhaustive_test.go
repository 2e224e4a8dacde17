package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

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
			if err := s.world.Barrier().Wait(ctx); err != nil {
				return err
			}
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
	for _, length := range []int{1, 1000} {
		recv := make([][]int, n)
		var waits []mpicxWaiter
		for r := range n {
			recv[r] = make([]int, length)
			waits = append(waits, mpicx.Recv(c, recv[r], mpicx.AnySource, 100+r))
		}
		for r := range n {
			send := make([]int, length)
			for i := range send {
				send[i] = 1000000*round + 1000*me + r
			}
			waits = append(waits, mpicx.Send(c, send, r, 100+me))
		}
		for _, w := range waits {
			if err := w.Wait(ctx); err != nil {
				return err
			}
		}
		for r := range n {
			for _, v := range recv[r] {
				if want := 1000000*round + 1000*r + me; v != want {
					return fmt.Errorf("rank %d: %d from rank %d, expected %d", me, v, r, want)
				}
			}
		}
	}
	all := make([]int, n)
	if err := mpicx.Allgather(c, []int{me}, all).Wait(ctx); err != nil {
		return err
	}
	for r, v := range all {
		if v != r {
			return fmt.Errorf("rank %d: Allgather brought %v", me, all)
		}
	}
	done, err := mpicx.Recv(c, make([]int, 1), mpicx.AnySource, mpicx.AnyTag).Test()
	if done || err != nil {
		return fmt.Errorf("rank %d: a message of before is there still (%v)", me, err)
	}
	return c.Barrier().Wait(ctx)
}

type mpicxWaiter interface{ Wait(context.Context) error }

// play runs the program with faults, on ranks × places, and checks all that is
// determined. That it ends is checked by mpicxtest.Run.
func play(t *testing.T, faults [][places]fault) {
	t.Helper()
	n := len(faults)
	subjects := make([]*subject, n)
	finals := make([]error, n)
	unwound := make([]bool, n)
	shrunk := make([]int, n)
	mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		s := &subject{world: world, faults: faults[me]}
		subjects[me] = s
		how, err := outcome(func() error { return world.Guard(ctx, s.program) })
		unwound[me] = how != nil
		if how == nil && err == nil {
			return exchange(ctx, world, len(s.verdicts))
		}
		if how == nil && !corrupted(err) {
			return fmt.Errorf("Guard returned %w", err)
		}
		for range 9 { // a rank that unwound may have errors of before to report
			if finals[me] = world.Barrier().Wait(ctx); finals[me] == nil || corrupted(finals[me]) {
				break
			}
		}
		if again := world.Barrier().Wait(ctx); again != finals[me] {
			return fmt.Errorf("it is final, but %v follows %v", again, finals[me])
		}
		if c := finals[me].(*mpicx.CommCorruptedError); len(c.Failures) > 0 || len(c.Dead) == 0 {
			return nil
		}
		small, err := world.Shrink().Get(ctx) // all who live are here
		if err != nil {
			return err
		}
		shrunk[me] = small.Size()
		return allowed(exchange(ctx, small, 0), func(err error) bool { return err == nil || corrupted(err) })
	})
	if t.Failed() {
		t.Logf("faults of ranks × places: %v", faults)
		return
	}
	raised := make(map[placeError]int) // how often it is in a verdict
	var dead, living []int
	for r, s := range subjects {
		for _, e := range s.raised {
			raised[*e] = 0
		}
		if unwound[r] = unwound[r] && !s.dead; s.dead {
			dead = append(dead, r)
		} else {
			living = append(living, r)
		}
	}
	if len(living) == 0 {
		return
	}
	corrupt := slices.Contains(unwound, true) || dead != nil

	// The verdicts of errors are the same at all ranks, each failure was raised,
	// and no error is in two of them.
	most := subjects[slices.MaxFunc(living, func(a, b int) int { return len(subjects[a].verdicts) - len(subjects[b].verdicts) })]
	for _, r := range living {
		s := subjects[r]
		if !unwound[r] { // else its program may have been gone when the last came
			require.Len(t, s.verdicts, len(most.verdicts), "verdicts of rank %d and %d: %v %v, faults %v",
				r, most.world.Rank(), s.verdicts, most.verdicts, faults)
		}
		for i, v := range s.verdicts {
			require.Equal(t, most.verdicts[i].Failures, v.Failures, "verdict %d of rank %d and %d, faults %v", i, r, most.world.Rank(), faults)
			for _, f := range v.Failures {
				e := placeError{f.Rank, f.Code - 100}
				require.Contains(t, raised, e)
				require.Equal(t, e.Error(), f.Message)
				require.Contains(t, f.Origin, "_test.go:")
				if s == most {
					raised[e]++
				}
				at := slices.IndexFunc(s.raised, func(own *placeError) bool { return *own == e })
				if f.Rank == r { // the origin finds the very cause
					require.ErrorIs(t, v, s.raised[at])
				} else {
					require.Equal(t, -1, at)
				}
			}
		}
	}
	for _, r := range living {
		err := finals[r]
		if !corrupt {
			require.NoError(t, err)
			continue
		}
		c, is := errors.AsType[*mpicx.CommCorruptedError](err)
		require.True(t, is, "rank %d got %v, faults %v", r, err, faults)
		first, _ := errors.AsType[*mpicx.CommCorruptedError](finals[living[0]])
		require.Equal(t, first.Failures, c.Failures, "rank %d and %d, faults %v", r, living[0], faults)
		require.Equal(t, first.Dead, c.Dead, "rank %d and %d, faults %v", r, living[0], faults)
		require.NotEmpty(t, len(c.Failures)+len(c.Dead))
		require.Subset(t, dead, c.Dead)
		require.Equal(t, shrunk[living[0]], shrunk[r], "size after Shrink, faults %v", faults)
		if len(c.Failures) == 0 {
			require.Equal(t, len(living), shrunk[r], "all have died before anybody can shrink, faults %v", faults)
		}
		for _, f := range c.Failures {
			require.True(t, unwound[f.Rank], "rank %d unwound, says %v; faults %v", f.Rank, c, faults)
		}
	}
	for e, count := range raised {
		if corrupt {
			require.LessOrEqual(t, count, 1, "%v, faults %v", e, faults)
		} else {
			require.Equal(t, 1, count, "%v, faults %v", e, faults)
		}
	}

	if dead != nil {
		return
	}
	// Nobody can hear of another's error before place 0: all are in the first
	// verdict (P2), with what others raise at later places before they hear of it.
	var first, unwinding []int
	later := false
	for r, f := range faults {
		switch {
		case f[0] > signalFault:
			unwinding = append(unwinding, r)
		case f[0] > 0:
			first = append(first, r)
		case f != [places]fault{}:
			later = true
		}
	}
	var failures []mpicx.Failure
	switch {
	case len(unwinding) > 0:
		require.Empty(t, most.verdicts, "a corruption wins (C2), faults %v", faults)
		c, _ := errors.AsType[*mpicx.CommCorruptedError](finals[0])
		first, failures = unwinding, c.Failures
	case len(first) > 0 && len(most.verdicts) > 0:
		failures = most.verdicts[0].Failures
	default:
		return // or all of it was lost to a corruption from a later place
	}
	var got []int
	for _, f := range failures {
		got = append(got, f.Rank)
	}
	if later {
		require.Subset(t, got, first, "ranks of the first verdict, faults %v", faults)
	} else {
		require.Equal(t, first, got, "ranks of the first verdict, faults %v", faults)
	}
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
	if mpicx.Backend == "ulfm" {
		kinds["die"] = dieFault
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			most := 4
			if testing.Short() {
				most = 3
			}
			for n := 1; n <= most; n++ {
				for ranks := 1; ranks < 1<<n; ranks++ {
					for where := range 1 << places {
						faults := make([][places]fault, n)
						for r := range n {
							for p := range places {
								if ranks>>r&1 != 0 && where>>p&1 != 0 {
									faults[r][p] = kind
								}
							}
						}
						play(t, faults)
						runs++
						if t.Failed() {
							t.FailNow()
						}
					}
				}
			}
			t.Logf("%d runs", runs)
		})
	}
}

// TestRandomFaults is TestExhaustive with more ranks, and faults of all kinds
// mixed, as many as fit.
func TestRandomFaults(t *testing.T) {
	rnd := seeded(t)
	runs := 2000
	switch {
	case testing.Short():
		runs = 50
	case raced:
		runs = 600
	}
	for i := range runs {
		n := 2 + rnd.IntN(14)
		if i%25 == 0 {
			n = 20 + rnd.IntN(60)
		}
		most := 2
		if rnd.IntN(3) == 0 {
			most = 4
			if mpicx.Backend == "ulfm" {
				most = 5
			}
		}
		share := 1 + rnd.IntN(40)
		faults := make([][places]fault, n)
		for r := range n {
			for p := range places {
				if rnd.IntN(share) == 0 {
					faults[r][p] = fault(1 + rnd.IntN(most))
				}
			}
		}
		play(t, faults)
		if t.Failed() {
			assert.FailNow(t, "see MPICX_SEED", "run %d", i)
		}
	}
}
