package mpicx_test

import (
	"context"
	"fmt"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A row of ranks, each of which tells its right neighbour its number. The ends of the row have
// no case of their own.
func ExampleSendrecv() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		left, right := world.Rank()-1, world.Rank()+1
		if left < 0 {
			left = mpicx.ProcNull
		}
		if right == world.Size() {
			right = mpicx.ProcNull
		}
		const tag = 1
		before := []int{-1}
		s, err := mpicx.Sendrecv(world, []int{world.Rank()}, right, tag, before, left, tag).Get(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("rank %d: %d, by %d elements\n", world.Rank(), before[0], s.Count)
		return nil
	}, mpicx.WithRanks(3))
	// Unordered output:
	// rank 0: -1, by 0 elements
	// rank 1: 0, by 1 elements
	// rank 2: 1, by 1 elements
}

// Work of several kinds, which its tag tells, and of any length. Several goroutines could do this
// at the same time: nobody else gets a message that Mprobe has taken.
func ExampleComm_Mprobe() {
	const numbers, text = 1, 2
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			return future.WaitAll(ctx, mpicx.Send(world, []float64{1, 2, 3}, 0, numbers), mpicx.SendValue(world, "done", 0, text))
		}
		for range 2 {
			m, err := world.Mprobe(mpicx.AnySource, mpicx.AnyTag).Get(ctx)
			if err != nil {
				return err
			}
			switch m.Tag {
			case numbers:
				got, err := mpicx.MrecvSlice[float64](m).Get(ctx)
				fmt.Println(got, err)
			case text:
				got, err := mpicx.MrecvValue[string](m).Get(ctx)
				fmt.Println(got, err)
			}
		}
		return nil
	}, mpicx.WithRanks(2))
	// Output:
	// [1 2 3] <nil>
	// done <nil>
}

// The same exchange in every step. What is in the buffer when Start is called is sent.
func ExamplePersistent() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		const tag = 1
		peer := 1 - world.Rank()
		mine, theirs := []float64{0}, []float64{0}
		recv, send := mpicx.RecvInit(world, theirs, peer, tag), mpicx.SendInit(world, mine, peer, tag)
		for step := range 3 {
			mine[0] = float64(10*step + world.Rank())
			if err := future.WaitAll(ctx, recv.Start(), send.Start()); err != nil {
				return err
			}
			if world.Rank() == 0 {
				fmt.Println(theirs[0])
			}
		}
		return nil
	}, mpicx.WithRanks(2))
	// Output:
	// 1
	// 11
	// 21
}

// A receive that is not needed any more.
func ExampleCancel() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		answer := mpicx.RecvValue[string](world, mpicx.AnySource, 1)
		fmt.Println(mpicx.Cancel(answer))
		fmt.Println(answer.Wait(ctx))
		return nil
	}, mpicx.WithRanks(1))
	// Output:
	// true
	// mpicx: RecvValue: cancelled
}

// Particles are sent as they lie in memory.
func ExampleSend_structs() {
	type particle struct {
		Position, Velocity [3]float64
		Charge             int8
	}
	type named struct {
		particle
		Name string
	}
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			return mpicx.Send(world, []particle{{Charge: -1}, {Charge: 2}}, 0, 1).Wait(ctx)
		}
		got, err := mpicx.RecvSliceStatus[particle](world, mpicx.AnySource, 1).Get(ctx)
		if err != nil {
			return err
		}
		fmt.Println(len(got.Value), "from rank", got.Status.Source, "with charges", got.Value[0].Charge, got.Value[1].Charge)
		fmt.Println(mpicx.Send(world, []named{{Name: "electron"}}, 1, 1).Wait(ctx))
		return nil
	}, mpicx.WithRanks(2))
	// Output:
	// 2 from rank 1 with charges -1 2
	// mpicx: Send: elements of type mpicx_test.named have pointers: field Name string, expected a type of fixed size without any
}
