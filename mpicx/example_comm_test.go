package mpicx_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A library that works on a duplicate has messages of its own, whatever tags the program uses.
func ExampleComm_Dup() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		library, err := world.Dup().Get(ctx)
		if err != nil {
			return err
		}
		const tag = 1
		if world.Rank() == 0 {
			err = future.WaitAll(ctx,
				mpicx.SendValue(world, "from the program", 1, tag),
				mpicx.SendValue(library, "from the library", 1, tag))
		} else {
			for _, c := range []*mpicx.Comm{library, world} {
				text, err := mpicx.RecvValue[string](c, 0, tag).Get(ctx)
				fmt.Println(text, err)
			}
		}
		return errors.Join(err, library.Close(ctx))
	}, mpicx.WithRanks(2))
	// Output:
	// from the library <nil>
	// from the program <nil>
}

// Six ranks as a grid of two rows: each row has a communicator, and adds up on its own.
func ExampleComm_Split() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		const columns = 3
		row, err := world.Split(world.Rank()/columns, world.Rank()).Get(ctx)
		if err != nil {
			return err
		}
		sum := []int{0}
		if err := mpicx.Allreduce(row, []int{world.Rank()}, sum, mpicx.Sum).Wait(ctx); err != nil {
			return err
		}
		fmt.Printf("rank %d is rank %d of its row: sum %d\n", world.Rank(), row.Rank(), sum[0])
		return row.Close(ctx)
	}, mpicx.WithRanks(6))
	// Unordered output:
	// rank 0 is rank 0 of its row: sum 3
	// rank 1 is rank 1 of its row: sum 3
	// rank 2 is rank 2 of its row: sum 3
	// rank 3 is rank 0 of its row: sum 12
	// rank 4 is rank 1 of its row: sum 12
	// rank 5 is rank 2 of its row: sum 12
}

// A program whose main function is not its own begins and ends its part in the job by itself.
// Without a launcher that is a job of one rank.
func ExampleInitialize() {
	ctx := context.Background()
	job, err := mpicx.Initialize(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	world := job.World()
	fmt.Printf("rank %d of %d\n", world.Rank(), world.Size())
	fmt.Println(job.Finalize(ctx))
	// Output:
	// rank 0 of 1
	// <nil>
}
