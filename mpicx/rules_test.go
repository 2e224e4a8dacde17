package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// run collects what each rank found, for the test to look at after the run.
func run[T any](t *testing.T, n int, fn func(ctx context.Context, world *mpicx.Comm) (T, error)) []T {
	t.Helper()
	all := make([]T, n)
	mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) (err error) {
		all[world.Rank()], err = fn(ctx, world)
		return err
	})
	if t.Failed() {
		t.FailNow()
	}
	return gather(t, all)
}

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

// settle lets all other ranks go on until each is blocked or done: time is fake.
func settle() { time.Sleep(time.Second) }

// propagated says that err is the verdict of one error of these codes.
func propagated(err error, codes ...int) error {
	p, is := err.(*mpicx.PropagatedError)
	if !is {
		return fmt.Errorf("got %v, expected an error of codes %v", err, codes)
	}
	var got []int
	for _, f := range p.Failures {
		got = append(got, f.Code)
	}
	if !slices.Equal(got, codes) {
		return fmt.Errorf("got codes %v, expected %v", got, codes)
	}
	return nil
}

// corruption says that err is the verdict of a corruption by this rank.
func corruption(err error, rank int) error {
	c, is := err.(*mpicx.CommCorruptedError)
	if !is || len(c.Failures) != 1 || c.Failures[0].Rank != rank {
		return fmt.Errorf("got %v, expected a corruption by rank %d", err, rank)
	}
	return nil
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
	}
	for _, op := range operations {
		for _, n := range []int{2, 5} {
			t.Run(fmt.Sprintf("%s/%d", op.name, n), func(t *testing.T) {
				mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
					if world.Rank() == 0 {
						if err := propagated(world.SignalError(ctx, 7), 7); err != nil {
							return err
						}
						return exchange(ctx, world, 0)
					}
					f := op.start(world)
					if err := propagated(f.Wait(ctx), 7); err != nil {
						return err
					}
					if done, _ := f.Test(); !done && world.Rank() == 1 {
						return errors.New("the future is not done")
					}
					return exchange(ctx, world, 0)
				})
			})
		}
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
			if err := propagated(err, 1); err != nil {
				return err
			}
			got := []int{0}
			recv := mpicx.Recv(world, got, mpicx.AnySource, mpicx.AnyTag)
			if done, _ := recv.Test(); done && got[0] < 0 {
				return fmt.Errorf("round %d: received %d of before", round, got[0])
			}
			if err := mpicx.Send(world, []int{round}, next, 3).Wait(ctx); err != nil {
				return err
			}
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
		if err := mpicx.Send(world, []int{5 + peer}, peer, 1).Wait(ctx); err != nil {
			return err
		}
		<-done.Done()
		pending := mpicx.Recv(world, []int{0}, peer, 2)
		if me == 0 {
			if err := world.Barrier().Wait(ctx); err != nil {
				return err
			}
			if err := propagated(world.SignalError(ctx, 3), 3); err != nil {
				return err
			}
		} else {
			if err := world.Barrier().Wait(ctx); err == nil {
				err = pending.Wait(ctx)
				if err := propagated(err, 3); err != nil {
					return err
				}
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
			if err := mpicx.Send(world, []int{42}, 1, 1).Wait(ctx); err != nil {
				return err
			}
			return propagated(world.SignalError(ctx, 3), 3)
		}
		got := []int{0}
		f := mpicx.Recv(world, got, 0, 1)
		<-f.Done()
		time.Sleep(time.Second) // fake: the error is here
		for done := false; !done; {
			var err error
			if done, err = f.Test(); done {
				if err := propagated(err, 3); err != nil {
					return err
				}
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
		if err := propagated(err, 100); err != nil {
			return err
		}
		if world.Rank() == 2 { // Err reports nothing, so it is still to come
			if err := propagated(world.Barrier().Wait(ctx), 100); err != nil {
				return err
			}
		}
		if err := world.Err(); err != nil {
			return fmt.Errorf("reported twice: %w", err)
		}
		return exchange(ctx, world, 0)
	})
}

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
			{world.Agree(1), mpicx.ClassUnsupported, []string{"Agree", "ulfm"}},
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

// C1, C4: who leaves Guard corrupts the communicator for all, waits for nobody,
// and everything on it ends with the same error from then on.
func TestC1Guard(t *testing.T) {
	leave := map[string]func(){
		"panic":  func() { panic("boom") },
		"goexit": runtime.Goexit,
		"thrown": func() { mpicx.Throw(&placeError{1, 1}) },
	}
	messages := map[string]string{"panic": "panic: boom", "goexit": mpicx.ErrGoexit.Error(), "thrown": "thrown at place 1 of rank 1"}
	for name, fn := range inOrder(leave) {
		t.Run(name, func(t *testing.T) {
			mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() == 1 {
					how, err := outcome(func() error {
						return world.Guard(ctx, func(context.Context) error { fn(); return nil })
					})
					switch name {
					case "panic":
						if how != "boom" {
							return fmt.Errorf("the panic went on as %v", how)
						}
					case "goexit":
						if how != "Goexit" {
							return fmt.Errorf("%v %v", err, how)
						}
					default:
						if e, is := errors.AsType[*placeError](err); !is || e.rank != 1 {
							return fmt.Errorf("Guard returned %v", err)
						}
					}
				}
				first := mpicx.Recv(world, []int{0}, mpicx.AnySource, 1).Wait(ctx)
				if err := corruption(first, 1); err != nil {
					return err
				}
				if m := first.(*mpicx.CommCorruptedError).Failures[0].Message; m != messages[name] {
					return fmt.Errorf("message %q", m)
				}
				for i, f := range []future.Waiter{mpicx.Send(world, []int{1}, 0, 1), world.Barrier(), world.Dup(), world.Split(0, 0), mpicx.AllgatherValue(world, 1)} {
					if err := f.Wait(ctx); err != first {
						return fmt.Errorf("operation %d: %v", i, err)
					}
				}
				if err := world.SignalError(ctx, 1); err != first || world.Err() != first {
					return fmt.Errorf("SignalError %v, Err %v", err, world.Err())
				}
				if err := world.Try(ctx, func(ctx context.Context) error { return world.Barrier().Wait(ctx) }); err != first {
					return fmt.Errorf("Try %v", err)
				}
				return world.Close(ctx)
			})
		})
	}
}

// C2: a corruption wins over a propagation under way, at every rank.
// What a rank sends after it has unwound reaches nobody, though it may be faster than
// the error.
func TestC1NothingAfterwards(t *testing.T) {
	const rounds = 100
	for range rounds {
		run(t, 4, func(ctx context.Context, world *mpicx.Comm) (any, error) {
			var err error
			switch got := []int{0}; world.Rank() {
			case 3:
				_ = world.Guard(ctx, func(context.Context) error { return errors.New("unwound") })
				err = mpicx.Send(world, got, 1, 0).Wait(ctx)
			case 1:
				err = mpicx.Recv(world, got, 3, 0).Wait(ctx)
			default:
				err = world.Barrier().Wait(ctx)
			}
			if !corrupted(err) {
				return nil, fmt.Errorf("rank %d got %v", world.Rank(), err)
			}
			return nil, nil
		})
	}
}

func TestC2CorruptionWins(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		var err error
		switch world.Rank() {
		case 0, 3:
			err = world.SignalError(ctx, 5)
		case 2: // computes until then
			time.Sleep(time.Second)
			_ = world.Guard(ctx, func(context.Context) error { return errors.New("unwound") })
			err = world.Barrier().Wait(ctx)
		default:
			err = world.Barrier().Wait(ctx)
		}
		return corruption(err, 2)
	})
}

// C3: the panic goes on, with its own stack, and Run returns it once the peers
// have been told.
func TestC3PanicGoesOn(t *testing.T) {
	oneProcess(t)
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		return world.Guard(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				explode()
			}
			return world.Barrier().Wait(ctx)
		})
	}, mpicx.WithRanks(3))
	p, is := errors.AsType[*mpicx.PanicError](err)
	require.True(t, is, "%v", err)
	require.Equal(t, 1, p.Rank)
	require.Equal(t, "boom", p.Value)
	require.Contains(t, string(p.Stack), "explode")
	require.Contains(t, string(p.Stack), "rules_test.go")
	c, is := errors.AsType[*mpicx.CommCorruptedError](err)
	require.True(t, is)
	require.NoError(t, corruption(c, 1))
	require.Equal(t, "panic: boom", c.Failures[0].Message)
	lines := strings.Split(err.Error(), "\n")
	require.True(t, strings.HasPrefix(lines[0], "rank 1: mpicx: rank 1 panicked: boom"), lines[0])
	require.Equal(t, "ranks 0, 2: mpicx: communicator corrupted by rank 1: panic: boom", lines[len(lines)-1])
}

func explode() { panic("boom") }

// D1, D2: families of communicators.
func TestD1ParentInterruptsChild(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		dup, err := world.Dup().Get(ctx)
		if err != nil {
			return err
		}
		part, err := dup.Split(world.Rank()%2, -world.Rank()).Get(ctx)
		if err != nil || part.Size() != 2 || part.Rank() != 1-world.Rank()/2 {
			return fmt.Errorf("Split: %v", err)
		}
		if world.Rank() == 3 {
			settle()
			err = world.SignalError(ctx, 9)
		} else {
			err = mpicx.Recv(part, []int{0}, mpicx.AnySource, 1).Wait(ctx)
		}
		if err := propagated(err, 9); err != nil {
			return err
		}
		for i, c := range []*mpicx.Comm{part, dup, world} {
			if err := exchange(ctx, c, i); err != nil {
				return fmt.Errorf("%v: %w", c, err)
			}
		}
		return nil
	})
}

// signalled has rank 0 signal, and all get that.
func signalled(ctx context.Context, c *mpicx.Comm, code int) error {
	if c.Rank() == 0 {
		return propagated(c.SignalError(ctx, code), code)
	}
	return propagated(mpicx.Recv(c, []int{0}, 0, 99).Wait(ctx), code)
}

// Communicators stay apart though as many errors lie between them as a byte counts.
func TestD1NamesDoNotComeAgain(t *testing.T) {
	run(t, 3, func(ctx context.Context, world *mpicx.Comm) (any, error) {
		var comms [3]*mpicx.Comm
		for i := range comms { // before, in between, and after
			err := world.TryAll(ctx, func(ctx context.Context) (err error) {
				comms[i], err = world.Dup().Get(ctx)
				return err
			})
			if err != nil {
				return nil, err
			}
			for code := range 128 {
				if err := signalled(ctx, world, code); err != nil {
					return nil, err
				}
			}
		}
		old, young := comms[0], comms[2]
		got := []int{0, 0}
		received := []future.Waiter{mpicx.Recv(old, got[:1], mpicx.AnySource, 1), mpicx.Recv(young, got[1:], mpicx.AnySource, 1)}
		next := (world.Rank() + 1) % world.Size()
		mpicx.Send(young, []int{2}, next, 1)
		mpicx.Send(old, []int{1}, next, 1)
		if err := future.WaitAll(ctx, received...); err != nil || got[0] != 1 || got[1] != 2 {
			return nil, fmt.Errorf("%v, %v", got, err)
		}
		if err := young.Barrier().Wait(ctx); err != nil {
			return nil, err
		}
		return nil, signalled(ctx, old, 7)
	})
}

// Fifteen communicators, each derived from the last, all have errors of their own; the
// next is an error at all ranks.
func TestD1Generations(t *testing.T) {
	run(t, 3, func(ctx context.Context, world *mpicx.Comm) (any, error) {
		comms := []*mpicx.Comm{world}
		err := world.TryAll(ctx, func(ctx context.Context) error {
			for len(comms) < 16 {
				c, err := comms[len(comms)-1].Dup().Get(ctx)
				if err != nil {
					return err
				}
				comms = append(comms, c)
			}
			last := comms[15]
			for _, f := range []*future.Future[*mpicx.Comm]{last.Dup(), last.Split(0, 0)} {
				_, err := f.Get(ctx)
				if e, ok := errors.AsType[*mpicx.MPIError](err); !ok || !strings.Contains(e.Text, "generation 16, expected 0 to 15") {
					return fmt.Errorf("communicator of generation 16: %v", err)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for code, c := range comms {
			if err := signalled(ctx, c, code+1); err != nil {
				return nil, err
			}
		}
		return nil, comms[15].Barrier().Wait(ctx)
	})
}

func TestD2NobodyHangsElsewhere(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		child, err := world.Split(world.Rank()/2, 0).Get(ctx)
		if err != nil {
			return err
		}
		me := world.Rank()
		for round := range 20 {
			// Rank 0 resolves an error of the child while rank 1, its other member,
			// is blocked in the parent, in what rank 0 does after.
			if me == 0 {
				if err := propagated(child.SignalError(ctx, round), round); err != nil {
					return err
				}
			}
			if err := world.Barrier().Wait(ctx); err != nil {
				return fmt.Errorf("round %d, parent: %w", round, err)
			}
			if me == 1 { // it gets the child's error at its next operation there
				if err := propagated(child.Barrier().Wait(ctx), round); err != nil {
					return err
				}
			}
			if err := exchange(ctx, child, round); err != nil {
				return err
			}
			// And the other way round: rank 3 is blocked in the child.
			settle()
			switch me {
			case 3:
				err = mpicx.Recv(child, []int{0}, 0, 9).Wait(ctx)
			default:
				err = world.SignalError(ctx, 50)
			}
			if p, is := err.(*mpicx.PropagatedError); !is || len(p.Failures) == 0 {
				return fmt.Errorf("round %d, child: %w", round, err)
			}
			if err := exchange(ctx, world, round); err != nil {
				return err
			}
			settle()
		}
		return nil
	})
}

// A corrupted communicator corrupts those derived from it that have the rank
// which unwound; the others report the error once and go on.
func TestCorruptedFamilies(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		child, err := world.Split(world.Rank()/2, 0).Get(ctx)
		if err != nil {
			return err
		}
		if world.Rank() == 1 {
			settle()
			_ = world.Guard(ctx, func(context.Context) error { return errors.New("unwound") })
		}
		err = mpicx.Recv(child, []int{0}, mpicx.AnySource, 1).Wait(ctx)
		if err := corruption(err, 1); err != nil {
			return err
		}
		if world.Rank() < 2 {
			return corruption(child.Barrier().Wait(ctx), 1)
		}
		if err := corruption(world.Barrier().Wait(ctx), 1); err != nil {
			return err
		}
		return exchange(ctx, child, 0)
	})
}

// A corrupted child leaves its parent alone.
func TestCorruptedChild(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		child, err := world.Dup().Get(ctx)
		if err != nil {
			return err
		}
		_ = child.Guard(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 {
				return errors.New("unwound")
			}
			return child.Barrier().Wait(ctx)
		})
		if err := corruption(child.Barrier().Wait(ctx), 0); err != nil {
			// The others leave Guard by the error too, before or after the verdict.
			if c, is := errors.AsType[*mpicx.CommCorruptedError](child.Err()); !is || c.Failures[0].Rank != 0 {
				return err
			}
		}
		return exchange(ctx, world, 0)
	})
}
