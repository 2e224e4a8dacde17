package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// F1: starting never fails, bad arguments come out of Wait with their value.
func TestF1BadArguments(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		one := []int{1}
		for i, test := range []struct {
			f     future.Waiter
			class mpicx.Class
			want  []string
		}{
			{mpicx.Send(world, one, 2, 0), mpicx.ClassRank, []string{"Send", "rank 2", "0 to 1"}},
			{mpicx.Send(world, one, -1, 0), mpicx.ClassRank, []string{"rank -1", "0 to 1"}},
			{mpicx.Ssend(world, one, 0, -5), mpicx.ClassTag, []string{"Ssend", "tag -5", "0 or more"}},
			{mpicx.Send(world, one, 0, mpicx.AnyTag), mpicx.ClassTag, []string{"tag -1"}},
			{mpicx.Recv(world, one, 7, 0), mpicx.ClassRank, []string{"Recv", "rank 7", "AnySource"}},
			{mpicx.Recv(world, one, 0, -2), mpicx.ClassTag, []string{"tag -2", "AnyTag"}},
			{mpicx.Probe[int](world, -2, 0), mpicx.ClassRank, []string{"Probe", "rank -2"}},
			{mpicx.RecvSlice[int](world, 9, 0), mpicx.ClassRank, []string{"RecvSlice", "rank 9"}},
			{mpicx.RecvValue[int](world, 9, 0), mpicx.ClassRank, []string{"RecvValue", "rank 9"}},
			{mpicx.SendValue(world, 1, 9, 0), mpicx.ClassRank, []string{"SendValue", "rank 9"}},
			{mpicx.SendValue(world, func() {}, 0, 0), mpicx.ClassType, []string{"SendValue", "func()"}},
			{world.Split(-7, 0), mpicx.ClassOther, []string{"Split", "color -7"}},
			{world.Shrink(), mpicx.ClassUnsupported, []string{"Shrink", "ulfm"}},
		} {
			err := test.f.Wait(ctx)
			if test.class == mpicx.ClassUnsupported && mpicx.Backend == "ulfm" {
				continue
			}
			var e *mpicx.MPIError
			if !errors.As(err, &e) || e.Class != test.class {
				return fmt.Errorf("%d: %v, expected class %v", i, err, test.class)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					return fmt.Errorf("%d: %v, expected it to have %q", i, err, want)
				}
			}
		}
		if err := world.Signal(ctx, nil); err == nil {
			return fmt.Errorf("Signal(nil): %v", err)
		}
		if mpicx.Backend == "blackchannel" && !errors.Is(world.Revoke(ctx), errors.ErrUnsupported) {
			return errors.New("Revoke works")
		}
		return exchange(ctx, world, 0)
	})
}

// F2: a context's cause is not final: the operation goes on and may be waited for
// again, and no peer is taken for failed.
func TestF2ContextEnds(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			time.Sleep(time.Hour)
			return mpicx.Send(world, []int{1}, 0, 1).Wait(ctx)
		}
		cause := errors.New("enough")
		f := mpicx.Recv(world, []int{0}, 1, 1)
		for range 3 {
			short, cancel := context.WithTimeoutCause(ctx, time.Second, cause)
			err := f.Wait(short)
			cancel()
			if !errors.Is(err, cause) {
				return fmt.Errorf("got %v, expected the cause", err)
			}
			if done, err := f.Test(); done || err != nil || world.Err() != nil {
				return fmt.Errorf("done %t %v, Err %v", done, err, world.Err())
			}
		}
		return f.Wait(ctx)
	})
}

// A deadline inside Try is this rank's error, and goes to all.
func TestDeadlineInTry(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 {
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return mpicx.Recv(world, []int{0}, 1, 1).Wait(short)
			}
			return mpicx.Recv(world, []int{0}, 0, 1).Wait(ctx)
		})
		p, is := err.(*mpicx.PropagatedError)
		if !is || len(p.Failures) != 1 || p.Failures[0].Message != "mpicx: Recv from rank 1, tag 1 on world: context deadline exceeded" {
			return fmt.Errorf("got %v", err)
		}
		if errors.Is(err, context.DeadlineExceeded) != (world.Rank() == 0) {
			return fmt.Errorf("the cause: %v", err)
		}
		return exchange(ctx, world, 0)
	})
}

// F4: once a future is done with an error, its buffer is the program's: what
// peers send to it later, or take from it, shows nothing of that.
func TestF4BufferIsFree(t *testing.T) {
	fakeTime(t)
	const length = 3000 // longer than what is buffered
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		n, me := world.Size(), world.Rank()
		for round := range 30 {
			var futures []future.Waiter
			var buffers [][]int
			add := func(start func(buf []int) future.Waiter) {
				buf := make([]int, length)
				buffers = append(buffers, buf)
				futures = append(futures, start(buf))
			}
			for r := range n {
				if r == me {
					continue
				}
				add(func(b []int) future.Waiter { return mpicx.Recv(world, b, r, 1) })
				add(func(b []int) future.Waiter { return mpicx.Recv(world, b, r, 2) })
				if r%2 == 0 {
					add(func(b []int) future.Waiter { return mpicx.Send(world, b, r, 1) })
				}
			}
			add(func(b []int) future.Waiter { return mpicx.Allreduce(world, b, make([]int, length), mpicx.Sum) })
			add(func(b []int) future.Waiter { return mpicx.Bcast(world, b, round%n) })
			var err error
			if me == round%n {
				settle()
				err = world.SignalError(ctx, round)
			} else {
				err = futures[1].Wait(ctx)
			}
			if err := propagated(err, round); err != nil {
				return err
			}
			for i, f := range futures {
				if done, _ := f.Test(); !done {
					return fmt.Errorf("round %d: future %d is not done", round, i)
				}
				for j := range buffers[i] {
					buffers[i][j] = -1 // the race detector would see anybody else here
				}
			}
			if err := exchange(ctx, world, round); err != nil {
				return err
			}
			for i, b := range buffers {
				for _, v := range b {
					if v != -1 {
						return fmt.Errorf("round %d: buffer %d was written to: %d", round, i, v)
					}
				}
			}
		}
		return nil
	})
}
