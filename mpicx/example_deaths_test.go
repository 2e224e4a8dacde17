package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/internal/exampletest"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

// Rank 2 dies. The others take the same decision nevertheless: whether all have converged.
func ExampleComm_Agree() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		if world.Rank() == 2 {
			inject.Die(world)
		}
		converged := 1
		if world.Rank() == 1 {
			converged = 0
		}
		all, err := world.Agree(converged).Get(ctx)
		var dead []int
		if failed, ok := errors.AsType[*mpicx.ProcFailedError](err); ok {
			all, dead = failed.Flag, failed.Ranks // agreed on nevertheless
		}
		fmt.Printf("rank %d: %d, without ranks %v\n", world.Rank(), all, dead)
		return nil
	}, mpicx.WithRanks(4))
	// With -tags ulfm this prints, in any order:
	// rank 0: 0, without ranks [2]
	// rank 1: 0, without ranks [2]
	// rank 3: 0, without ranks [2]
}

// Rank 1 dies. The others continue with a smaller communicator.
func ExampleComm_Shrink() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			inject.Die(world)
		}
		err := world.Barrier().Wait(ctx)
		if _, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
			smaller, err := world.Shrink().Get(ctx)
			if err != nil {
				return err
			}
			fmt.Printf("rank %d of %d is now rank %d of %d\n", world.Rank(), world.Size(), smaller.Rank(), smaller.Size())
			return smaller.Barrier().Wait(ctx)
		}
		return err
	}, mpicx.WithRanks(3))
	// With -tags ulfm this prints, in any order:
	// rank 0 of 3 is now rank 0 of 2
	// rank 2 of 3 is now rank 1 of 2
}

// Rank 1 dies, and a spare takes its place. Run calls the function at the spare, whose world is
// the communicator that Replace has made.
func ExampleComm_Replace() {
	solve := func(ctx context.Context, comm *mpicx.Comm) error {
		sum, err := mpicx.AllreduceValue(comm, comm.Rank(), func(a, b int) int { return a + b }).Get(ctx)
		if err == nil && comm.Rank() == 1 {
			fmt.Printf("rank 1 of %d, incarnation %d: sum %d\n", comm.Size(), comm.Incarnation(), sum)
		}
		return err
	}
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 && world.Incarnation() == 0 {
			inject.Die(world)
		}
		err := solve(ctx, world)
		if _, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
			repaired, err := world.Replace().Get(ctx)
			if err != nil {
				return err
			}
			return solve(ctx, repaired)
		}
		return err
	}, mpicx.WithRanks(3), mpicx.WithSpares(1))
	// With -tags ulfm this prints:
	// rank 1 of 3, incarnation 1: sum 3
}

// Rank 2 dies, and only rank 0 waits for it. Rank 1 waits for rank 0, which lives, and would
// wait forever: rank 0 ends its Wait by Revoke.
func ExampleComm_Revoke() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		const tag = 1
		switch world.Rank() {
		case 0:
			err := mpicx.Recv(world, []int{0}, 2, tag).Wait(ctx)
			fmt.Println("rank 0:", err)
			return world.Revoke(ctx)
		case 1:
			err := mpicx.Recv(world, []int{0}, 0, tag).Wait(ctx)
			fmt.Println("rank 1:", err, errors.Is(err, mpicx.ErrRevoked))
		case 2:
			inject.Die(world)
		}
		return nil
	}, mpicx.WithRanks(3))
	// With -tags ulfm this prints:
	// rank 0: mpicx: processes of ranks [2] have died
	// rank 1: mpicx: communicator revoked true
}

// With ErrorsReturn a death is an error of the operations that need the dead rank, and of no
// other: the communicator still works between the living.
func ExampleComm_SetErrhandler() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		const tag = 1
		switch world.Rank() {
		case 0:
			err := mpicx.Recv(world, []int{0}, 2, tag).Wait(ctx)
			if failed, ok := errors.AsType[*mpicx.ProcFailedError](err); ok {
				fmt.Println("dead:", failed.Ranks)
			}
			return mpicx.SendValue(world, "hello", 1, tag).Wait(ctx)
		case 1:
			text, err := mpicx.RecvValue[string](world, 0, tag).Get(ctx)
			fmt.Println(text)
			return err
		}
		inject.Die(world)
		return nil
	}, mpicx.WithRanks(3))
	// With -tags ulfm this prints:
	// dead: [2]
	// hello
}

// Any rank may send a result. When one has died, the receive says so and stays pending, because
// the dead rank may have been the sender. After AckFailed it waits for the living.
func ExampleComm_AckFailed() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		const result, ready = 1, 2
		switch world.Rank() {
		case 0:
			f := mpicx.RecvValue[string](world, mpicx.AnySource, result)
			if err := f.Wait(ctx); errors.Is(err, mpicx.ErrProcFailedPending) {
				fmt.Println("dead:", world.Failed())
				world.AckFailed(len(world.Failed()))
			}
			if err := mpicx.SendValue(world, true, 1, ready).Wait(ctx); err != nil {
				return err
			}
			fmt.Println(f.Get(ctx))
		case 1:
			if err := mpicx.RecvValue[bool](world, 0, ready).Wait(ctx); err != nil {
				return err
			}
			return mpicx.SendValue(world, "result of rank 1", 0, result).Wait(ctx)
		case 2:
			inject.Die(world)
		}
		return nil
	}, mpicx.WithRanks(3))
	// With -tags ulfm this prints:
	// dead: [2]
	// result of rank 1 <nil>
}

func TestExamplesOfDeaths(t *testing.T) {
	oneProcess(t)
	exampletest.Check(t, "example_deaths_test.go", map[string]func(){
		"ExampleComm_Agree":         ExampleComm_Agree,
		"ExampleComm_Shrink":        ExampleComm_Shrink,
		"ExampleComm_Replace":       ExampleComm_Replace,
		"ExampleComm_Revoke":        ExampleComm_Revoke,
		"ExampleComm_SetErrhandler": ExampleComm_SetErrhandler,
		"ExampleComm_AckFailed":     ExampleComm_AckFailed,
	})
}
