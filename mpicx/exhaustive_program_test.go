package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

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
	seen := make([]seen, n)
	for r, f := range faults { // where it is a process it can't say so
		for p := range f {
			if f[p] == dieFault {
				seen[r].Died, seen[r].Raised = true, append(seen[r].Raised, raised{r, p})
			}
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
	if t.Failed() {
		t.Logf("faults of ranks × places: %v", faults)
		return
	}
	judge(t, faults, gather(t, seen))
}
