package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// What becomes of operations that need ranks whose functions have returned. With the black channel
// the operation ends with an *MPIError that says so. With the ULFM backend they are dead for it.

// onBackends runs a program with each of the backends. Where a rank would wait forever
// the bubble says so.
func onBackends(t *testing.T, n int, program func(ctx context.Context, backend string, world *mpicx.Comm) error) {
	for _, backend := range []string{"blackchannel", "ulfm"} {
		t.Run(backend, func(t *testing.T) {
			run := func(t *testing.T) {
				require.NoError(t, mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
					return program(ctx, backend, world)
				}, mpicx.WithRanks(n), hook.Backend[mpicx.Option](backend)))
			}
			switch {
			case processes == nil:
				synctest.Test(t, run)
			case backend == "blackchannel" || len(fitting(n)) == 0:
				t.Skip("processes that have returned are not noticed, or there are too few")
			default:
				run(t)
			}
		})
	}
}

// An operation is one that needs rank peer, which may be AnySource.
type operation struct {
	name  string
	peer  int
	begin func(c *mpicx.Comm, peer int) future.Waiter
}

func needing() (all []operation) {
	for peer, tag := range product([]int{1, mpicx.AnySource}, []int{5, mpicx.AnyTag}) {
		all = append(all,
			operation{"Recv", peer, func(c *mpicx.Comm, peer int) future.Waiter { return mpicx.Recv(c, []int{0}, peer, tag) }},
			operation{"RecvSlice", peer, func(c *mpicx.Comm, peer int) future.Waiter { return mpicx.RecvSlice[int](c, peer, tag) }},
			operation{"RecvValue", peer, func(c *mpicx.Comm, peer int) future.Waiter { return mpicx.RecvValue[string](c, peer, tag) }},
			operation{"Probe", peer, func(c *mpicx.Comm, peer int) future.Waiter { return mpicx.Probe[int](c, peer, tag) }},
		)
	}
	return append(all,
		operation{"Ssend", 1, func(c *mpicx.Comm, peer int) future.Waiter { return mpicx.Ssend(c, []int{0}, peer, 5) }},
		operation{"Send", 1, func(c *mpicx.Comm, peer int) future.Waiter { return mpicx.Send(c, make([]int, 1<<16), peer, 5) }},
		operation{"Sendrecv", 1, func(c *mpicx.Comm, peer int) future.Waiter {
			return mpicx.Sendrecv(c, make([]int, 1<<16), peer, 5, []int{0}, mpicx.ProcNull, 5)
		}},
		operation{"Sendrecv", 1, func(c *mpicx.Comm, peer int) future.Waiter {
			return mpicx.Sendrecv(c, make([]int, 1<<16), mpicx.ProcNull, 5, []int{0}, peer, 5)
		}},
	)
}

// The ways to wait for one.
var waysToWait = map[string]func(ctx context.Context, f future.Waiter) error{
	"Wait": func(ctx context.Context, f future.Waiter) error { return f.Wait(ctx) },
	"WaitAny": func(ctx context.Context, f future.Waiter) error {
		never, _ := future.New[int]()
		_, err := future.WaitAny(ctx, never, f)
		return err
	},
	"Wait twice": func(ctx context.Context, f future.Waiter) error {
		other := future.Go(func() (struct{}, error) { return struct{}{}, f.Wait(ctx) })
		return errors.Join(f.Wait(ctx), other.Wait(ctx))
	},
}

// The ways to wait that do not say so: the library can't know that the program will not
// send to itself.
var waysToLook = map[string]func(ctx context.Context, f future.Waiter) error{
	"Test": func(ctx context.Context, f future.Waiter) error {
		for {
			if done, err := f.Test(); done || err != nil {
				return err
			}
		}
	},
	"Done": func(ctx context.Context, f future.Waiter) error {
		<-f.Done()
		return f.Wait(ctx)
	},
}

// endsAsReturned checks the error of an operation that needs a rank which has returned.
func endsAsReturned(o operation, backend string, h mpicx.Errhandler, err error) error {
	err = ofOne(err)
	if backend == "blackchannel" {
		what := "rank 1 has returned"
		if o.peer == mpicx.AnySource {
			what = "every other rank of the communicator has returned"
		}
		return isMPIError(err, o.name, mpicx.ClassOther, what)
	}
	if err == mpicx.ErrProcFailedPending && h == mpicx.ErrorsReturn && o.peer == mpicx.AnySource {
		return nil
	}
	var dead []int
	if c, is := errors.AsType[*mpicx.CommCorruptedError](err); is && h == mpicx.ErrorsPropagate {
		dead = c.Dead
	} else if p, is := errors.AsType[*mpicx.ProcFailedError](err); is && h == mpicx.ErrorsReturn {
		dead = p.Ranks
	}
	if len(dead) == 0 || o.peer >= 0 && !slices.Contains(dead, o.peer) {
		return fmt.Errorf("%s, peer %d: got %v (%T)", o.name, o.peer, err, err)
	}
	return nil
}

// unlessCorrupted is err, unless that says that a rank which has returned is dead: it may
// come to those that have not, yet.
func unlessCorrupted(err error) error {
	if corrupted(err) {
		return nil
	}
	return err
}

// A need is an operation of rank 0 that needs ranks which return, and how it waits for that.
type need struct {
	operation
	wait    func(context.Context, future.Waiter) error
	handler mpicx.Errhandler
	onDup   bool
	when    string // the others have returned: "before" it begins, "meanwhile", while it is "pending", or all but "one stays"
}

func TestWhatNeedsRanksThatHaveReturned(t *testing.T) {
	oneProcess(t)
	for o, when := range product(needing(), []string{"before", "meanwhile", "pending", "one stays"}) {
		ways := maps.Clone(waysToWait)
		if o.peer >= 0 {
			maps.Copy(ways, waysToLook)
		} else if when == "one stays" {
			continue // that one may send
		}
		for way, wait := range ways {
			for h, onDup := range product([]mpicx.Errhandler{mpicx.ErrorsPropagate, mpicx.ErrorsReturn}, []bool{false, true}) {
				t.Run(fmt.Sprint(o.name, " ", o.peer, " ", way, " ", h, " ", onDup, " ", when), func(t *testing.T) {
					onBackends(t, 3, need{o, wait, h, onDup, when}.play)
				})
			}
		}
	}
}

func (x need) play(ctx context.Context, backend string, world *mpicx.Comm) error {
	world.SetErrhandler(x.handler)
	c := world
	if x.onDup {
		c = world.Dup().MustGet(ctx)
	}
	err := world.Barrier().Wait(ctx) // all have what they need
	if world.Rank() > 0 {
		tags := map[string][]int{"pending": {9}, "one stays": {9, 10}}[x.when]
		for _, tag := range tags[:min(len(tags), world.Rank())] {
			if err == nil {
				err = mpicx.Recv(world, []int{0}, 0, tag).Wait(ctx)
			}
		}
		return unlessCorrupted(err)
	}
	if err != nil {
		return err
	}
	if x.when == "before" {
		synctest.Wait()
	}
	f := x.begin(c, x.peer)
	if x.when == "pending" || x.when == "one stays" {
		for r := world.Size() - 1; r > 0; r-- { // rank 1 last: that dies of it
			mpicx.Send(world, []int{0}, r, 9) // done at once, and a Wait may tell of the death
		}
	}
	err = endsAsReturned(x.operation, backend, x.handler, x.wait(ctx, f))
	if x.when == "one stays" {
		mpicx.Send(world, []int{0}, 2, 10)
	}
	return err
}

// A receive from anybody needs the members of its communicator, and no others.
func TestReturnedMembersOfASplit(t *testing.T) {
	oneProcess(t)
	onBackends(t, 4, func(ctx context.Context, backend string, world *mpicx.Comm) error {
		half := world.Split(world.Rank()%2, 0).MustGet(ctx)
		if err := world.Barrier().Wait(ctx); err != nil {
			return unlessCorrupted(err)
		}
		o := operation{name: "Recv", peer: mpicx.AnySource}
		switch world.Rank() {
		case 0:
			mpicx.Throw(endsAsReturned(o, backend, mpicx.ErrorsPropagate, mpicx.Recv(half, []int{0}, o.peer, 5).Wait(ctx)))
			if backend == "blackchannel" { // else the others hear of the death
				mpicx.Send(world, []int{0}, 1, 5).MustWait(ctx)
			}
		case 1:
			err := mpicx.Recv(world, []int{0}, o.peer, 5).Wait(ctx)
			if backend == "ulfm" {
				return isA[*mpicx.CommCorruptedError](err)
			}
			return err
		}
		return nil
	})
}

// H1, H3: a rank that acknowledges each death learns in the end that nobody is left who could send;
// until it waits for that, it may send to itself.
func TestReceiveFromAnybodyWhenAllHaveDied(t *testing.T) {
	const n = 4
	for o, way := range product(needing(), slices.Sorted(maps.Keys(waysToWait))) {
		for died, onDup := range product(indices(n), []bool{false, true}) {
			if o.peer != mpicx.AnySource {
				continue
			}
			t.Run(fmt.Sprint(o.name, " ", way, " ", died, " ", onDup), func(t *testing.T) {
				inBubble(t, n, func(ctx context.Context, world *mpicx.Comm) error {
					return someDie(ctx, world, o, waysToWait[way], died, onDup)
				}, hook.Backend[mpicx.Option]("ulfm"))
			})
		}
	}
}

// someDie has this number of the other ranks die, and the rest return, while rank 0 waits.
func someDie(ctx context.Context, world *mpicx.Comm, o operation, wait func(context.Context, future.Waiter) error, died int, onDup bool) error {
	world.SetErrhandler(mpicx.ErrorsReturn)
	c, me := world, world.Rank()
	if onDup {
		c = world.Dup().MustGet(ctx)
		for r := 1; r < c.Size(); r++ { // all have it, before anybody dies
			switch me {
			case 0:
				mpicx.Send(c, []int{0}, r, 1)
			case r:
				mpicx.Recv(c, []int{0}, 0, 1).MustWait(ctx)
			}
		}
	}
	switch {
	case me == 0:
		return allDie(ctx, c, o, wait)
	case me <= died:
		mpicxtest.Die(world)
	}
	return nil
}

// allDie waits for a receive from anybody, acknowledging deaths, until no peer is left.
func allDie(ctx context.Context, c *mpicx.Comm, o operation, wait func(context.Context, future.Waiter) error) error {
	f := o.begin(c, o.peer)
	for len(c.Failed()) < c.Size()-1 {
		known := len(c.Failed())
		mpicx.Throw(explain(expect(f.Wait(ctx), mpicx.ErrProcFailedPending), "%d known to be dead", known))
		c.AckFailed(len(c.Failed()))
	}
	c.AckFailed(c.Size())
	if done, err := f.Test(); done || err != nil {
		return fmt.Errorf("this rank may send to itself: %t, %v", done, err)
	}
	for range 2 { // it is final
		mpicx.Throw(explain(deadIs(ofOne(wait(ctx, f)), 1, 2, 3), "%s", o.name))
	}
	if done, err := f.Test(); !done {
		return fmt.Errorf("not done: %v", err)
	}
	mpicx.Throw(deadIs(o.begin(c, o.peer).Wait(ctx), 1, 2, 3))
	got := []int{0}
	own := mpicx.Recv(c, got, mpicx.AnySource, 77)
	mpicx.Throw(errors.Join(mpicx.Ssend(c, []int{7}, c.Rank(), 77).Wait(ctx), own.Wait(ctx)))
	return same("from itself", got, []int{7})
}

// ofOne is what the first of two goroutines was told, if that is err.
func ofOne(err error) error {
	if joined, is := err.(interface{ Unwrap() []error }); is {
		return joined.Unwrap()[0]
	}
	return err
}

// A receive that the rank does not wait for yet may be meant for a message to itself.
func TestSendsToItselfWhenOthersHaveReturned(t *testing.T) {
	oneProcess(t)
	onBackends(t, 3, func(ctx context.Context, backend string, world *mpicx.Comm) error {
		if world.Rank() > 0 {
			return nil
		}
		synctest.Wait()
		for range 3 {
			got := []int{0}
			f := mpicx.Recv(world, got, mpicx.AnySource, 5)
			done, err := f.Test()
			require.False(t, done || err != nil, "%v", err)
			f.Done()
			mpicx.Ssend(world, []int{7}, 0, 5).MustWait(ctx)
			require.Equal(t, mpicx.Status{Source: 0, Tag: 5, Count: 1}, f.MustGet(ctx))
			require.Equal(t, []int{7}, got)
		}
		return nil
	})
}

// A rank returns though it waits for itself, and nobody dies. What it has sent before arrives.
func TestReturnedNeedsItself(t *testing.T) {
	for source, begin := range map[int]func(c *mpicx.Comm){
		1:               func(c *mpicx.Comm) { mpicx.Recv(c, []int{0}, c.Rank(), 5) },
		mpicx.AnySource: func(c *mpicx.Comm) { mpicx.Ssend(c, []int{0}, c.Rank(), 5) },
	} {
		onBackends(t, 3, func(ctx context.Context, _ string, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				mpicx.Send(world, []int{1}, 0, 7).MustWait(ctx)
				begin(world)
				return nil
			}
			settle()
			mpicx.Throw(same("the dead", world.Failed(), nil))
			if world.Rank() == 0 {
				return mpicx.Recv(world, []int{0}, source, 7).Wait(ctx)
			}
			return nil
		})
	}
}

// An error says that a rank has returned, not that it has died.
func TestErrorsSayWhoHasReturned(t *testing.T) {
	oneProcess(t) // a process may learn of the error first
	for handler, want := range map[mpicx.Errhandler]string{
		mpicx.ErrorsPropagate: "mpicx: communicator corrupted; rank 1 has returned",
		mpicx.ErrorsReturn:    "mpicx: rank 1 has returned",
	} {
		mortal(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
			world.SetErrhandler(handler)
			if world.Rank() == 1 {
				return nil
			}
			err := world.Barrier().Wait(ctx)
			settle() // the others are told before this rank returns as well
			require.EqualError(t, err, want)
			return nil
		})
	}
	err := &mpicx.CommCorruptedError{Dead: []int{1}} // a program may make one
	require.EqualError(t, err, "mpicx: communicator corrupted; dead: [1]")
}

// An error of a duplicate reaches the ranks that have made it, although the program of another rank has ended without
// it, before or after the error.
func TestErrorOnADupThatARankNeverMakes(t *testing.T) {
	fakeTime(t)
	for _, pause := range []time.Duration{0, time.Minute} {
		mpicxtest.RunWith(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				time.Sleep(pause)
				return nil
			}
			dup := world.Dup().MustGet(ctx)
			inner := dup.Dup().MustGet(ctx)
			time.Sleep(time.Second)
			for _, c := range []*mpicx.Comm{inner, dup} {
				if world.Rank() == 3 {
					_ = c.Signal(ctx, errors.New("disk full"))
				} else {
					mpicx.Throw(isA[*mpicx.PropagatedError](mpicx.Recv(c, []int{0}, world.Rank(), 0).Wait(ctx)))
				}
			}
			return nil
		}, hook.Backend[mpicx.Option]("blackchannel"))
	}
}
