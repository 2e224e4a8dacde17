package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// What becomes of operations that need ranks whose functions have returned. With the
// black channel the operation ends with an *MPIError that says so. With the ULFM backend
// they are dead for it.

// onBackends runs a program with each of the backends. Where a rank would wait for ever
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
	if joined, is := err.(interface{ Unwrap() []error }); is { // of two goroutines
		err = joined.Unwrap()[0]
	}
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
	for _, o := range needing() {
		ways := maps.Clone(waysToWait)
		if o.peer >= 0 {
			maps.Copy(ways, waysToLook)
		}
		for way, wait := range ways {
			for h, onDup := range product([]mpicx.Errhandler{mpicx.ErrorsPropagate, mpicx.ErrorsReturn}, []bool{false, true}) {
				for _, when := range []string{"before", "meanwhile", "pending", "one stays"} {
					if when == "one stays" && o.peer == mpicx.AnySource {
						continue // that one may send
					}
					t.Run(fmt.Sprint(o.name, " ", o.peer, " ", way, " ", h, " ", onDup, " ", when), func(t *testing.T) {
						onBackends(t, 3, need{o, wait, h, onDup, when}.play)
					})
				}
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
		switch world.Rank() {
		case 0:
			o := operation{name: "Recv", peer: mpicx.AnySource}
			err := endsAsReturned(o, backend, mpicx.ErrorsPropagate, mpicx.Recv(half, []int{0}, mpicx.AnySource, 5).Wait(ctx))
			if backend == "ulfm" {
				return err // the others hear of the death
			}
			mpicx.Send(world, []int{0}, 1, 5).MustWait(ctx)
			return err
		case 1:
			err := mpicx.Recv(world, []int{0}, mpicx.AnySource, 5).Wait(ctx)
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
	for _, o := range needing() {
		if o.peer != mpicx.AnySource {
			continue
		}
		for way, wait := range waysToWait {
			for died, onDup := range product(indices(n), []bool{false, true}) {
				t.Run(fmt.Sprint(o.name, " ", way, " ", died, " ", onDup), func(t *testing.T) {
					inBubble(t, n, func(ctx context.Context, world *mpicx.Comm) error {
						return someDie(ctx, world, o, wait, died, onDup)
					}, hook.Backend[mpicx.Option]("ulfm"))
				})
			}
		}
	}
}

// someDie has so many of the other ranks die and the rest return, while rank 0 waits.
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
		if err := f.Wait(ctx); !errors.Is(err, mpicx.ErrProcFailedPending) {
			return fmt.Errorf("%d known to be dead: %v", known, err)
		}
		c.AckFailed(len(c.Failed()))
	}
	c.AckFailed(c.Size())
	if done, err := f.Test(); done || err != nil {
		return fmt.Errorf("this rank may send to itself: %t, %v", done, err)
	}
	for range 2 { // it is final
		err := wait(ctx, f)
		if joined, is := err.(interface{ Unwrap() []error }); is {
			err = joined.Unwrap()[0]
		}
		if err := deadIs(err, 1, 2, 3); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	if done, err := f.Test(); !done {
		return fmt.Errorf("not done: %v", err)
	}
	mpicx.Throw(deadIs(o.begin(c, o.peer).Wait(ctx), 1, 2, 3))
	got := []int{0}
	own := mpicx.Recv(c, got, mpicx.AnySource, 77)
	mpicx.Throw(mpicx.Ssend(c, []int{7}, c.Rank(), 77).Wait(ctx))
	if err := own.Wait(ctx); err != nil || got[0] != 7 {
		return fmt.Errorf("from itself: got %v, %v", got, err)
	}
	return nil
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
			if done, err := f.Test(); done || err != nil {
				return fmt.Errorf("done: %v, %v", done, err)
			}
			f.Done()
			mpicx.Ssend(world, []int{7}, 0, 5).MustWait(ctx)
			if s, err := f.Get(ctx); err != nil || got[0] != 7 || s.Source != 0 {
				return fmt.Errorf("got %v: %v, %v", got, s, err)
			}
		}
		return nil
	})
}

// What a rank has sent before it returned arrives.
func TestMessagesOfRanksThatHaveReturned(t *testing.T) {
	oneProcess(t)
	const n, each = 4, 3
	onBackends(t, n, func(ctx context.Context, backend string, world *mpicx.Comm) error {
		if r := world.Rank(); r > 0 {
			for i := range each {
				mpicx.Send(world, []int{r*10 + i}, 0, r).MustWait(ctx)
			}
			return nil
		}
		synctest.Wait()
		got := []int{0}
		for i := range each {
			for r := 1; r < n; r++ {
				source := []int{r, mpicx.AnySource}[i%2]
				s, err := mpicx.Recv(world, got, source, r).Get(ctx)
				if err != nil || s.Source != r || got[0] != r*10+i {
					return fmt.Errorf("message %d from %d: %v %v %v", i, r, got, s, err)
				}
			}
		}
		o := operation{name: "Recv", peer: mpicx.AnySource}
		return endsAsReturned(o, backend, mpicx.ErrorsPropagate, mpicx.Recv(world, got, mpicx.AnySource, 1).Wait(ctx))
	})
}

// A rank that returns because of an error says that, not that it has returned.
func TestWaitsForRankThatFails(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for _, source := range slices.Repeat([]int{1, mpicx.AnySource}, 50) {
			err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() == 1 {
					return errors.New("failed")
				}
				return isA[*mpicx.CommCorruptedError](mpicx.Recv(world, []int{0}, source, 5).Wait(ctx))
			}, mpicx.WithRanks(2), backend)
			if err != nil { // nil: rank 0 was told before rank 1 had returned
				require.EqualError(t, err, "rank 1: failed")
			}
		}
	})
}

// What a rank waits for from itself is no need of it: it returns, and nobody dies.
func TestReturnedNeedsItself(t *testing.T) {
	for _, begin := range []func(c *mpicx.Comm){
		func(c *mpicx.Comm) { mpicx.Recv(c, []int{0}, c.Rank(), 5) },
		func(c *mpicx.Comm) { mpicx.Ssend(c, []int{0}, c.Rank(), 5) },
	} {
		onBackends(t, 3, func(ctx context.Context, _ string, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				mpicx.Send(world, []int{1}, 0, 7).MustWait(ctx)
				begin(world)
				return nil
			}
			settle()
			mpicx.Throw(same("the dead", world.Failed(), nil))
			if world.Rank() == 0 { // what it has sent is there
				return mpicx.Recv(world, []int{0}, 1, 7).Wait(ctx)
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
			time.Sleep(time.Second) // of a fake clock: the others are told before this rank returns as well
			if err == nil || err.Error() != want {
				return fmt.Errorf("got %v, expected %s", err, want)
			}
			return nil
		})
	}
	if got := (&mpicx.CommCorruptedError{Dead: []int{1}}).Error(); got != "mpicx: communicator corrupted; dead: [1]" {
		t.Error(got) // a program may make one
	}
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

// H9: Run waits for the collective calls that a rank has begun, with either backend: its peers get
// their results, and no error.
func TestBegunCallsComplete(t *testing.T) {
	oneProcess(t)
	begin := []func(c *mpicx.Comm) waiter{
		func(c *mpicx.Comm) waiter { return c.Barrier() },
		func(c *mpicx.Comm) waiter { return mpicx.Bcast(c, make([]byte, 1<<17), c.Size()-1) },
		func(c *mpicx.Comm) waiter { return mpicx.Reduce(c, []int{1}, []int{0}, mpicx.Sum, c.Size()/2) },
		func(c *mpicx.Comm) waiter { return mpicx.Allreduce(c, make([]int, 9000), make([]int, 9000), mpicx.Sum) },
		func(c *mpicx.Comm) waiter { return mpicx.Allgather(c, []int{1}, make([]int, c.Size())) },
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for seed := range uint64(200) {
			n := 2 + int(seed)%7
			require.NoError(t, mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
				dup := world.Dup().MustGet(ctx)
				calls := rand.New(rand.NewPCG(seed, 0)) // the same at all ranks
				waits := rand.New(rand.NewPCG(seed, 1+uint64(world.Rank())))
				for range 1 + calls.IntN(20) {
					on := []*mpicx.Comm{world, dup}[calls.IntN(2)]
					f := begin[calls.IntN(len(begin))](on)
					if waits.IntN(3) == 0 {
						mpicx.Throw(f.Wait(ctx))
					}
				}
				return nil
			}, mpicx.WithRanks(n), backend), "seed %d, %d ranks", seed, n)
		}
	})
}

// A function that fails in a call for which its rank waits in Run: that is the rank's error, and
// its peers do not wait for the result.
func TestFunctionFailsInBegunCall(t *testing.T) {
	oneProcess(t)
	ways := []struct {
		name string
		fail func(c *mpicx.Comm)
		want string
	}{
		{"panics", func(*mpicx.Comm) { panic("no sum") }, "no sum"},
		{"ends its goroutine", func(*mpicx.Comm) { runtime.Goexit() }, "Goexit"},
		{"begins a call", func(c *mpicx.Comm) { c.Barrier() }, "Barrier"},
		{"waits", func(c *mpicx.Comm) { _ = mpicx.Recv(c, []int{0}, 1, 0).Wait(context.Background()) }, "waits for an operation"},
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for way, late := range product(ways, []bool{false, true}) { // the function is called when its rank has returned
			t.Run(fmt.Sprintf("%s, late %t", way.name, late), func(t *testing.T) {
				returned, called := make(chan struct{}), make(chan struct{})
				err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
					if world.Rank() > 0 && late {
						<-returned
					}
					f := mpicx.AllreduceFunc(world, []int{1}, []int{0}, func(a, b int) int {
						if world.Rank() == 0 {
							defer close(called)
							way.fail(world)
						}
						return a + b
					})
					if world.Rank() > 0 {
						return f.Wait(ctx)
					}
					if !late {
						<-called
					}
					close(returned)
					return nil
				}, mpicx.WithRanks(4), backend)
				require.ErrorContains(t, err, "rank 0: ")
				assert.ErrorContains(t, err, way.want)
				var p *mpicx.PanicError
				if way.name == "panics" && assert.ErrorAs(t, err, &p) {
					assert.Equal(t, 0, p.Rank)
					assert.Equal(t, "no sum", p.Value)
				}
				var c *mpicx.CommCorruptedError
				require.ErrorAs(t, err, &c)
				for _, f := range c.Failures {
					assert.Contains(t, f.Message, way.want)
				}
			})
		}
	})
}

// H9: a call that a rank never makes is a wrong program. A rank that waits for it is told, in Wait
// or in Run, and so is one that is in a call which another one leaves for that reason.
func TestCallThatOneNeverMakes(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for name, begin := range map[string]func(c *mpicx.Comm) waiter{
			"Barrier":        func(c *mpicx.Comm) waiter { return c.Barrier() },
			"Allreduce":      func(c *mpicx.Comm) waiter { return mpicx.Allreduce(c, make([]int, 9000), make([]int, 9000), mpicx.Sum) },
			"AllgatherValue": func(c *mpicx.Comm) waiter { return mpicx.AllgatherValue(c, "a") },
		} {
			for n := 2; n <= 4; n++ {
				for never := range n {
					text := fmt.Sprintf("rank %d has returned", never)
					_, err := neverMade(backend, begin, n, never, false)
					require.ErrorContains(t, err, name+": "+text, "%d ranks", n)
					told, err := neverMade(backend, begin, n, never, true)
					require.NoError(t, err, "all were told")
					for r, err := range told {
						require.ErrorContains(t, err, "has returned", "%s, %d ranks, rank %d", name, n, r)
					}
					require.ErrorContains(t, errors.Join(told...), text, "%s, %d ranks", name, n)
				}
			}
		}
	})
}

// neverMade has all of n ranks but one begin a call, with or without a Wait, and returns what the
// Waits and Run have returned.
func neverMade(backend mpicx.Option, begin func(c *mpicx.Comm) waiter, n, never int, waits bool) (told []error, err error) {
	told = make([]error, n)
	err = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == never {
			return nil
		}
		if f := begin(world); waits {
			told[world.Rank()] = f.Wait(ctx)
		}
		return nil
	}, mpicx.WithRanks(n), backend)
	return slices.Delete(told, never, never+1), err
}

// Where a rank waits in Run and another one for that rank, the context's end ends both.
func TestRunWaitsUntilContextEnds(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() == 0 {
					world.Barrier()
					return nil
				}
				return mpicx.Recv(world, []int{0}, 0, 5).Wait(context.Background())
			}, mpicx.WithRanks(2), backend, diagnosesTo(io.Discard))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "Barrier")
		})
	})
}

// A rank whose program has returned, and for which Run waits, takes part in errors. They end its
// pending calls.
func TestErrorsEndBegunCalls(t *testing.T) {
	oneProcess(t)
	for name, fail := range map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"Signal": func(ctx context.Context, world *mpicx.Comm) error {
			return isA[*mpicx.PropagatedError](world.SignalError(ctx, 7))
		},
		"Guard": func(ctx context.Context, world *mpicx.Comm) error {
			_ = world.Guard(ctx, func(context.Context) error { return errors.New("bad input") })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBackends(t, 3, func(ctx context.Context, _ string, world *mpicx.Comm) error {
				if world.Rank() > 0 {
					world.Barrier()
					return nil
				}
				synctest.Wait()
				return fail(ctx, world)
			})
		})
	}
}
