package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// TestSimultaneousSignals: all ranks signal before they hear of one another, time
// after time; each time all are in the one verdict (P2, P5).
func TestSimultaneousSignals(t *testing.T) {
	const rounds = 50
	for _, n := range []int{1, 2, 3, 4, 7, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			all := run(t, n, func(ctx context.Context, world *mpicx.Comm) (got [][]mpicx.Failure, _ error) {
				for i := range rounds {
					err := world.SignalError(ctx, 1000*i+world.Rank())
					p, is := errors.AsType[*mpicx.PropagatedError](err)
					if !is {
						return nil, err
					}
					got = append(got, p.Failures)
				}
				return got, exchange(ctx, world, rounds)
			})
			for i := range rounds {
				require.Len(t, all[0][i], n, "round %d: %v", i, all[0][i])
				for r := range n {
					require.Equal(t, all[0][i], all[r][i])
					require.Equal(t, 1000*i+r, all[r][i][r].Code)
					require.Equal(t, r, all[r][i][r].Rank)
				}
			}
		})
	}
}

// P1: whatever was pending ends, and each rank gets the error once.
func TestP1WhateverWasPending(t *testing.T) {
	type operation struct {
		name  string
		start func(c *mpicx.Comm) future.Waiter
	}
	operations := []operation{
		{"Recv", func(c *mpicx.Comm) future.Waiter { return mpicx.Recv(c, make([]int, 1), 0, 1) }},
		{"Recv any", func(c *mpicx.Comm) future.Waiter { return mpicx.Recv(c, make([]int, 1), mpicx.AnySource, mpicx.AnyTag) }},
		{"RecvSlice", func(c *mpicx.Comm) future.Waiter { return mpicx.RecvSlice[int](c, 0, 1) }},
		{"RecvValue", func(c *mpicx.Comm) future.Waiter { return mpicx.RecvValue[string](c, 0, 1) }},
		{"Ssend", func(c *mpicx.Comm) future.Waiter { return mpicx.Ssend(c, []int{1}, 0, 1) }},
		{"long Send", func(c *mpicx.Comm) future.Waiter { return mpicx.Send(c, make([]int, 10000), 0, 1) }},
		{"Probe", func(c *mpicx.Comm) future.Waiter { return mpicx.Probe[int](c, 0, 1) }},
		{"Barrier", func(c *mpicx.Comm) future.Waiter { return c.Barrier() }},
		{"Allreduce", func(c *mpicx.Comm) future.Waiter {
			return mpicx.Allreduce(c, make([]int, 9), make([]int, 9), mpicx.Sum)
		}},
		{"AllgatherValue", func(c *mpicx.Comm) future.Waiter { return mpicx.AllgatherValue(c, "x") }},
		{"Scan", func(c *mpicx.Comm) future.Waiter { return mpicx.Scan(c, make([]int, 9), make([]int, 9), mpicx.Sum) }},
		{"Split", func(c *mpicx.Comm) future.Waiter { return c.Split(0, 0) }},
		{"Create", func(c *mpicx.Comm) future.Waiter { return c.Create(c.Group()) }},
		{"CartCreate", func(c *mpicx.Comm) future.Waiter { return mpicx.CartCreate(c, []int{c.Size()}, nil) }},
		{"GraphCreate", func(c *mpicx.Comm) future.Waiter { return mpicx.GraphCreate(c, nil, nil) }},
		{"SplitShared", func(c *mpicx.Comm) future.Waiter { return c.SplitShared(0) }},
	}
	for op, n := range product(operations, []int{2, 5}) {
		t.Run(fmt.Sprintf("%s/%d", op.name, n), func(t *testing.T) {
			mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() == 0 {
					mpicx.Throw(propagated(world.SignalError(ctx, 7), 7))
					return exchange(ctx, world, 0)
				}
				f := op.start(world)
				mpicx.Throw(propagated(f.Wait(ctx), 7))
				if done, _ := f.Test(); !done && world.Rank() == 1 {
					return errors.New("the future is not done")
				}
				return exchange(ctx, world, 0)
			})
		})
	}
}

// P3: messages of before the error are never received after it, be they
// buffered, long, or sent by a rank that does not know of it yet.
func TestP3NoStaleMessage(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		for round := range 20 {
			next := (world.Rank() + 1) % 3
			mpicx.Send(world, []int{-1}, next, 1)
			mpicx.Send(world, make([]int, 5000), next, 1)
			mpicx.Ssend(world, []int{-2}, next, 2)
			var err error
			if world.Rank() == round%3 {
				settle()
				err = world.SignalError(ctx, 1)
			} else {
				err = world.Barrier().Wait(ctx)
			}
			mpicx.Throw(propagated(err, 1))
			got := []int{0}
			recv := mpicx.Recv(world, got, mpicx.AnySource, mpicx.AnyTag)
			if done, _ := recv.Test(); done && got[0] < 0 {
				return fmt.Errorf("round %d: received %d of before", round, got[0])
			}
			mpicx.Send(world, []int{round}, next, 3).MustWait(ctx)
			if s, err := recv.Get(ctx); err != nil || got[0] != round || s.Tag != 3 {
				return fmt.Errorf("round %d: received %d, %v, %v", round, got[0], s, err)
			}
			settle()
		}
		return nil
	})
}

// P4: a future that was done keeps its result; one that was pending ends with the
// verdict, its buffer free: see also TestF4.
func TestP4DoneKeepsPendingEnds(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		me, peer := world.Rank(), 1-world.Rank()
		got := []int{0}
		done := mpicx.Recv(world, got, peer, 1)
		mpicx.Send(world, []int{5 + peer}, peer, 1).MustWait(ctx)
		<-done.Done()
		pending := mpicx.Recv(world, []int{0}, peer, 2)
		if me == 0 {
			world.Barrier().MustWait(ctx)
			mpicx.Throw(propagated(world.SignalError(ctx, 3), 3))
		} else {
			if err := world.Barrier().Wait(ctx); err == nil {
				err = pending.Wait(ctx)
				mpicx.Throw(propagated(err, 3))
			}
		}
		for range 3 {
			if s, err := done.Get(ctx); err != nil || s.Count != 1 || s.Source != peer || got[0] != 5+me {
				return fmt.Errorf("done: %v %v %v", s, err, got)
			}
			if isDone, err := pending.Test(); !isDone || propagated(err, 3) != nil {
				return fmt.Errorf("pending: %v %v", isDone, err)
			}
		}
		return nil
	})
}

// P7: a Wait that finds its operation done and an error not yet reported reports
// the error; the next Wait has the message.
func TestP7ErrorBeforeMessage(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			mpicx.Send(world, []int{42}, 1, 1).MustWait(ctx)
			return propagated(world.SignalError(ctx, 3), 3)
		}
		got := []int{0}
		f := mpicx.Recv(world, got, 0, 1)
		<-f.Done()
		time.Sleep(time.Second) // fake: the error is here
		for done := false; !done; {
			var err error
			if done, err = f.Test(); done {
				mpicx.Throw(propagated(err, 3))
			}
		}
		if s, err := f.Get(ctx); err != nil || got[0] != 42 || s.Count != 1 {
			return fmt.Errorf("the message is lost: %v %v %v", got, s, err)
		}
		return nil
	})
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			mpicx.Send(world, []int{42}, 1, 1)
			return propagated(world.SignalError(ctx, 3), 3)
		}
		time.Sleep(time.Second)
		f := mpicx.Recv(world, []int{0}, 0, 1)
		return propagated(f.Wait(ctx), 3)
	})
}

// P7 for Test: while an error is on its way a Wait would block, so Test says false, even of a
// future that WaitAny has returned. The rank has then joined the round (P2), so the error comes,
// and after it the result.
func TestP7TestAfterWaitAny(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		switch world.Rank() {
		case 1:
			mpicx.Send(world, []int{42}, 0, 1).MustWait(ctx)
			time.Sleep(time.Second)
			return propagated(world.SignalError(ctx, 3), 3)
		case 2: // computes, and so delays the verdict
			time.Sleep(3 * time.Second)
			return propagated(world.Barrier().Wait(ctx), 3)
		}
		got := []int{0}
		never, f := mpicx.Recv(world, []int{0}, 2, 1), mpicx.Recv(world, got, 1, 1)
		if i, err := future.WaitAny(ctx, never, f); i != 1 || err != nil {
			return fmt.Errorf("WaitAny: %d %v", i, err)
		}
		if done, err := f.Test(); !done || err != nil {
			return fmt.Errorf("before the error: %v %v", done, err)
		}
		time.Sleep(2 * time.Second) // the notice is here
		if done, err := f.Test(); done || err != nil {
			return fmt.Errorf("while the error is on its way: %v %v", done, err)
		}
		time.Sleep(2 * time.Second) // the verdict is here
		if done, err := f.Test(); !done || propagated(err, 3) != nil {
			return fmt.Errorf("after the verdict: %v %v", done, err)
		}
		if done, err := f.Test(); !done || err != nil || got[0] != 42 {
			return fmt.Errorf("the message is lost: %v %v %v", done, err, got)
		}
		return nil
	})
}

// P8: a rank that computes learns of an error by its context and by Err.
func TestP8ComputingRank(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			switch world.Rank() {
			case 0:
				time.Sleep(time.Minute)
				return &placeError{0, 0}
			case 1:
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Hour):
					return errors.New("the context did not end")
				}
			}
			for range 1000000 {
				if err := world.Err(); err != nil {
					if p := propagated(err, 100); p != nil {
						return p
					}
					return err
				}
				time.Sleep(time.Second)
			}
			return errors.New("Err said nothing")
		})
		mpicx.Throw(propagated(err, 100))
		mpicx.Throw(explain(world.Err(), "reported twice"))
		return exchange(ctx, world, 0)
	})
}
