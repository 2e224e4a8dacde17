package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/mpicx/go-mpicx/future"
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
	yield(rand.IntN(3))
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
	if p, is := errors.AsType[*mpicx.PropagatedError](err); is {
		s.verdicts = append(s.verdicts, p)
		return false, nil
	}
	return err == nil, err
}

// program has point-to-point messages, collectives and Try blocks inside of one another, each of
// which handles its errors and continues. It repeats until all ranks get through.
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

func corrupted(err error) bool { return hasType[*mpicx.CommCorruptedError](err) }

// inner are the inner Try blocks.
func (s *subject) inner() []func(context.Context) error {
	n, me := s.world.Size(), s.world.Rank()
	return []func(context.Context) error{
		func(ctx context.Context) error { // a ring, in which messages wait for one another
			s.at(ctx, 0)
			got := []int{-1}
			recv := mpicx.Recv(s.world, got, (me+n-1)%n, 1)
			send := mpicx.Ssend(s.world, []int{me}, (me+1)%n, 1)
			recv.MustWait(ctx)
			s.at(ctx, 1)
			mpicx.Throw(same("the ring", got, []int{(me + n - 1) % n}))
			return send.Wait(ctx)
		},
		func(ctx context.Context) error {
			s.at(ctx, 2)
			sum := []int{0}
			mpicx.Allreduce(s.world, []int{1}, sum, mpicx.Sum).MustWait(ctx)
			mpicx.Throw(same("the sum", sum, []int{n}))
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
	done, err := mpicx.Recv(c, make([]int, 1), mpicx.AnySource, mpicx.AnyTag).Test()
	if done || err != nil {
		return fmt.Errorf("rank %d: a message of before is there still (%v)", me, err)
	}
	return first(same("Allgather", all, indices(n)), c.Barrier().Wait(ctx))
}
