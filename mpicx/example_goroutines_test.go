package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Each rank waits for its cells in several goroutines. What one of them throws becomes the error of
// all ranks, and ends the Waits of all goroutines.
func ExampleComm_TryAll_errgroup() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		err := world.TryAll(ctx, func(ctx context.Context) error {
			n, me := world.Size(), world.Rank()
			g, ctx := errgroup.WithContext(ctx) // when one fails, the others' Waits end
			for cell := range 3 {
				g.Go(func() (err error) {
					defer future.Catch(&err) // TryAll catches only what its own goroutine throws
					value := []float64{1}
					mpicx.Sendrecv(world, value, (me+1)%n, cell, value, (me+n-1)%n, cell).MustWait(ctx)
					if me == 1 && cell == 2 {
						mpicx.Throw(fmt.Errorf("cell %d has no volume", cell))
					}
					return nil
				})
			}
			return g.Wait()
		})
		fmt.Printf("rank %d: %v\n", world.Rank(), err)
		return world.Barrier().Wait(ctx) // the communicator works
	}, mpicx.WithRanks(3))
	// Unordered output:
	// rank 0: mpicx: error propagated from rank 1: cell 2 has no volume
	// rank 1: mpicx: error propagated from rank 1: cell 2 has no volume
	// rank 2: mpicx: error propagated from rank 1: cell 2 has no volume
}

// A goroutine that watches over the computation signals what it finds. Signal returns the error and
// takes it from nobody: TryAll returns it at all ranks.
func ExampleComm_Signal_watcher() {
	full := errors.New("disk full")
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		var watcher errgroup.Group
		err := world.TryAll(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 {
				watcher.Go(func() error { return world.Signal(ctx, full) })
			}
			return mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx) // nobody sends
		})
		fmt.Printf("rank %d: %v\n", world.Rank(), err)
		if world.Rank() == 0 {
			fmt.Println("watcher:", watcher.Wait())
		}
		return nil
	}, mpicx.WithRanks(2))
	// Unordered output:
	// rank 0: mpicx: error propagated from rank 0: disk full
	// rank 1: mpicx: error propagated from rank 0: disk full
	// watcher: mpicx: error propagated from rank 0: disk full
}

// A listener outlives the function that began it. What it waits for ends with the error, and so
// does what it begins later with the context of the Try.
func ExampleComm_Try_listener() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		var listener sync.WaitGroup
		var pending, later error
		err := world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				return errors.New("disk full")
			}
			request := mpicx.Recv(world, []int{0}, mpicx.AnySource, 1)
			listener.Go(func() {
				pending = request.Wait(ctx)
				later = mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx)
			})
			<-ctx.Done()
			return ctx.Err()
		})
		listener.Wait()
		if world.Rank() == 0 {
			fmt.Println("Try:", err)
			fmt.Println("pending:", pending)
			fmt.Println("later:", later)
		}
		return world.Barrier().Wait(ctx) // the communicator works
	}, mpicx.WithRanks(2))
	// Output:
	// Try: mpicx: error propagated from rank 1: disk full
	// pending: mpicx: error propagated from rank 1: disk full
	// later: mpicx: error propagated from rank 1: disk full
}
