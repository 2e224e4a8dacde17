package mpicx_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// H1: what involves a dead process ends, whatever it is, before and after the
// death; what does not continues.
func TestH1Involved(t *testing.T) {
	mortal(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		switch world.Rank() {
		case 3:
			mpicx.Recv(world, []int{0}, 0, 9).MustWait(ctx)
			mpicxtest.Die(world)
		case 0:
			recv := mpicx.Recv(world, []int{0}, 3, 1)
			slice := mpicx.RecvSlice[int](world, 3, 1)
			value := mpicx.RecvValue[string](world, 3, 1)
			probe, mprobe := mpicx.Probe[int](world, 3, 1), world.Mprobe(3, 1)
			persistent := mpicx.RecvInit(world, []int{0}, 3, 1)
			started := persistent.Start()
			ssend := mpicx.Ssend(world, []int{1}, 3, 1)
			long := mpicx.Send(world, make([]int, 10000), 3, 1)
			barrier := world.Barrier()
			mpicx.Send(world, []int{1}, 3, 9).MustWait(ctx)
			mpicx.Throw(first(deadIs(recv.Wait(ctx), 3), deadIs(started.Wait(ctx), 3))) // done: it is started again below
			for range 2 {
				for i, f := range []future.Waiter{
					slice, value, probe, mprobe, started, ssend, long, barrier, mpicx.Recv(world, []int{0}, 3, 1), persistent.Start(),
					mpicx.Send(world, []int{0}, 3, 1), mpicx.SendValue(world, 1, 3, 1), world.Barrier(),
					mpicx.Bcast(world, []int{1}, 0), mpicx.AllgatherValue(world, 1), world.Dup(), world.Split(0, 0), world.SplitShared(0),
				} {
					mpicx.Throw(explain(deadIs(f.Wait(ctx), 3), "operation %d", i))
				}
			}
		default:
			mpicx.Throw(deadIs(world.Barrier().Wait(ctx), 3))
			for range 2 {
				for _, f := range []future.Waiter{world.Dup(), world.Split(0, 0), world.SplitShared(0)} {
					mpicx.Throw(deadIs(f.Wait(ctx), 3))
				}
			}
		}
		for r := range 3 { // all to all among the living
			mpicx.Send(world, []int{world.Rank()}, r, 5).MustWait(ctx)
		}
		for r := range 3 {
			got := []int{-1}
			mpicx.Recv(world, got, r, 5).MustWait(ctx)
			require.Equal(t, r, got[0])
		}
		return nil
	})
}

// A message that was there before its sender died is received; one that a receive
// had matched even more so. The sender dies when the receiver has seen the last of them:
// a fabric may still have had to send one that is only on its way.
func TestMessageOfTheDead(t *testing.T) {
	mortal(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			for tag := range 3 {
				mpicx.Send(world, []int{tag}, 0, tag).MustWait(ctx)
			}
			mpicx.Ssend(world, []int{3}, 0, 3) // of which the bytes die with it
			mpicx.Recv(world, []int{0}, 0, 5).MustWait(ctx)
			mpicxtest.Die(world)
		}
		matched := mpicx.Recv(world, []int{0}, 1, 0)
		mpicx.Throw(first(mpicx.Probe[int](world, 1, 2).Wait(ctx), mpicx.Send(world, []int{0}, 1, 5).Wait(ctx)))
		mpicx.Throw(deadIs(mpicx.Recv(world, []int{0}, 1, 4).Wait(ctx), 1))
		return first(matched.Wait(ctx), mpicx.Recv(world, []int{0}, mpicx.AnySource, 2).Wait(ctx),
			mpicx.Recv(world, []int{0}, 1, 1).Wait(ctx), deadIs(mpicx.Recv(world, []int{0}, 1, 3).Wait(ctx), 1))
	})
}

// What a rank sent last, before it died, keeps nobody else's messages from coming,
// however long it was and though the receiver looked only later.
func TestLastWordsOfTheDead(t *testing.T) {
	for _, words := range []int{1, 490, 750, 1020, 50_000} { // a packet of Open MPI's is 4 KiB
		t.Run(fmt.Sprint(words), func(t *testing.T) { lastWords(t, words) })
	}
}

func lastWords(t *testing.T, words int) {
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		const messages = 50
		switch world.Rank() {
		case 1:
			mpicx.Send(world, make([]int, words), 0, 1)
			mpicxtest.Die(world)
		case 2:
			for i := range messages {
				mpicx.Send(world, []int{i}, 0, 2).MustWait(ctx)
			}
			return mpicx.Recv(world, []int{0}, 0, 3).Wait(ctx)
		}
		mpicx.Throw(deadIs(mpicx.Recv(world, []int{0}, 1, 2).Wait(ctx), 1))
		got := []int{-1}
		for i := range messages {
			mpicx.Recv(world, got, 2, 2).MustWait(ctx)
			require.Equal(t, i, got[0])
		}
		return mpicx.Send(world, []int{0}, 2, 3).Wait(ctx)
	})
}

// H2: the first to meet the dead tells all, also those that wait for the living;
// the error is the same everywhere and stays.
func TestH2Propagate(t *testing.T) {
	for _, victim := range []int{0, 2, 4} {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			propagating(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
				me := world.Rank()
				if me == victim {
					mpicxtest.Die(world)
				}
				err := world.Guard(ctx, func(ctx context.Context) error { // a chain, of which only one waits for the dead
					return mpicx.Recv(world, []int{0}, (me+1)%5, 0).Wait(ctx)
				})
				mpicx.Throw(corruptedBy(err, victim))
				require.Same(t, err, world.Barrier().Wait(ctx))
				require.Equal(t, []int{victim}, world.Failed())
				return nil
			})
		})
	}
}

// A death corrupts the communicator that it was met on, and those made of it that
// the dead belonged to; others continue.
func TestDeathInFamily(t *testing.T) {
	propagating(t, 6, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		part := world.Split(me%2, 0).MustGet(ctx)
		mpicx.Throw(meet(ctx, world, -1))
		if me == 4 {
			mpicxtest.Die(world)
		}
		if me%2 == 0 {
			mpicx.Throw(corruptedBy(part.Barrier().Wait(ctx), 2)) // rank 2 of its part
			part = part.Shrink().MustGet(ctx)
		}
		mpicx.Throw(exchange(ctx, part, 0))
		err := meet(ctx, world, 4)
		if err == nil { // else another is there already
			err = world.Barrier().Wait(ctx)
		}
		mpicx.Throw(corruptedBy(err, 4))
		if me%2 == 0 {
			return nil // its part is derived from one that is corrupted anyhow
		}
		return allowed(part.Barrier().Wait(ctx), func(err error) bool { return err == nil || corruptedBy(err, 4) == nil })
	})
}

// All goroutines of a rank end when it dies; others may learn at different times.
func TestDyingWithGoroutines(t *testing.T) {
	var dying sync.WaitGroup
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			end := func(operation func()) {
				dying.Go(func() {
					operation()
					panic("goes on")
				})
			}
			for range 3 {
				end(func() { _ = mpicx.Recv(world, []int{0}, 0, 77).Wait(ctx) })
			}
			end(func() { _, _ = world.Agree(1).Get(ctx) })
			mpicxtest.Die(world)
		}
		errs := make(chan error)
		for range 2 {
			go func() { errs <- mpicx.Recv(world, []int{0}, 1, 0).Wait(ctx) }()
		}
		err := first(deadIs(<-errs, 1), deadIs(<-errs, 1))
		dying.Wait() // after the end of the job, an operation returns an error instead
		return err
	})
}
