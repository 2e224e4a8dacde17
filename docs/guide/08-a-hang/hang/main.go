// A solver whose ranks each decide for themselves when they are done. It hangs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

var (
	deadline = flag.Duration("deadline", 2*time.Second, "`time` that the job may take")
	ask      = flag.Bool("ask", false, "rank 0 asks after half a second what all are in")
)

func main() {
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *deadline)
	defer cancel()
	if err := mpicx.Run(ctx, program, mpicx.WithRanks(4)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func program(ctx context.Context, world *mpicx.Comm) error {
	if *ask && world.Rank() == 0 {
		time.AfterFunc(500*time.Millisecond, func() { watch(ctx, world) })
	}
	residual, sum := 1/(1+float64(world.Rank())), []float64{0}
	for residual > 1e-3 { // wrong: sum[0] is the same at all ranks, residual is not
		residual /= 2
		if err := mpicx.Allreduce(world, []float64{residual * residual}, sum, mpicx.Sum).Wait(ctx); err != nil {
			return err
		}
	}
	result := []float64{sum[0]}
	if world.Rank() > 0 {
		return mpicx.Recv(world, result, 0, 9).Wait(ctx)
	}
	for rank := 1; rank < world.Size(); rank++ {
		if err := mpicx.Send(world, result, rank, 9).Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// watch prints what all ranks are in, and what this one waits for.
func watch(ctx context.Context, world *mpicx.Comm) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	all, err := world.Diagnose(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(all)
	fmt.Println(world.Blocked())
}
