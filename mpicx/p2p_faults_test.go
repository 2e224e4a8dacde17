package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// pointToPoint are steps of a program whose ranks form a ring, each with operations of its own.
// They can be repeated.
func pointToPoint(world *mpicx.Comm) (steps []func(ctx context.Context) error) {
	n, me := world.Size(), world.Rank()
	left, right := (me+n-1)%n, (me+1)%n
	for _, length := range []int{1, 20_000} {
		out, in := numbers(length, me), make([]int, length)
		check := func(got []int, err error) error {
			if err == nil && !slices.Equal(got, numbers(length, left)) {
				err = fmt.Errorf("%d elements from rank %d: %v…", len(got), left, got[0])
			}
			return err
		}
		recv, send := mpicx.RecvInit(world, in, left, 3), mpicx.SsendInit(world, out, right, 3)
		steps = append(steps, func(ctx context.Context) error {
			return check(in, mpicx.Sendrecv(world, out, right, 1, in, left, 1).Wait(ctx))
		}, func(ctx context.Context) error {
			both := slices.Clone(out)
			return check(both, mpicx.Sendrecv(world, both, right, 1, both, mpicx.AnySource, 1).Wait(ctx))
		}, func(ctx context.Context) error {
			sent := mpicx.Send(world, out, right, 2)
			m, err := world.Mprobe(mpicx.AnySource, 2).Get(ctx)
			if err != nil {
				return err
			}
			return errors.Join(check(mpicx.MrecvSlice[int](m).Get(ctx)), sent.Wait(ctx))
		}, func(ctx context.Context) error {
			for range 2 {
				if err := check(in, future.WaitAll(ctx, recv.Start(), send.Start())); err != nil {
					return err
				}
			}
			return nil
		}, func(ctx context.Context) error {
			f := mpicx.Recv(world, in, mpicx.AnySource, 4) // nobody sends that
			cancelled := mpicx.Cancel(f)
			if err := f.Wait(ctx); !cancelled || !errors.Is(err, mpicx.ErrCancelled) {
				return fmt.Errorf("cancelled %t: %w", cancelled, err)
			}
			return nil
		})
	}
	return steps
}

func inTurn(ctx context.Context, steps []func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// P1, P3, P4: an error in place of any step ends what the others are in, and all steps work
// afterwards.
func TestPointToPointUnderErrors(t *testing.T) {
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for _, n := range fitting(2, 3) {
			for victim := range n {
				mpicxtest.RunWith(t, n, func(ctx context.Context, world *mpicx.Comm) error {
					steps := pointToPoint(world)
					for k := range steps {
						err := world.Try(ctx, func(ctx context.Context) error {
							if world.Rank() != victim {
								mpicx.Throw(inTurn(ctx, steps))
								return world.Barrier().Wait(ctx)
							}
							mpicx.Throw(inTurn(ctx, steps[:k]))
							return errors.New("enough")
						})
						if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || p.Failures[0].Rank != victim || len(p.Failures) != 1 {
							return fmt.Errorf("step %d: %w", k, err)
						}
						mpicx.Throw(explain(world.TryAll(ctx, func(ctx context.Context) error { return inTurn(ctx, steps) }), "after the error in step %d", k))
					}
					return nil
				}, backend)
			}
		}
	})
}

// H1, H2: a rank dies in place of any of its operations, and the others end, all of them.
func TestPointToPointUnderDeaths(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const n = 3
	for k := 1; ; k++ {
		killed := mpicxtest.RunFaults(t, n, fmt.Sprintf("kill 1 at operation %d", k), func(ctx context.Context, world *mpicx.Comm) error {
			err := world.TryAll(ctx, func(ctx context.Context) error { return inTurn(ctx, pointToPoint(world)) })
			if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok && slices.Equal(c.Dead, []int{1}) {
				return nil
			}
			return err
		})
		if len(killed) == 0 {
			break
		}
	}
}

// Revoke ends pending operations, messages that were taken and not received, and operations that
// begin later.
func TestPointToPointRevoked(t *testing.T) {
	mortal(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		peer := 1 - world.Rank()
		long := make([]int, 20_000)
		sent := mpicx.Send(world, long, peer, 1)
		m := world.Mprobe(peer, 1).MustGet(ctx)
		persistent := mpicx.RecvInit(world, long, peer, 2)
		pending := []future.Waiter{sent, mpicx.Sendrecv(world, []int{1}, peer, 3, []int{0}, peer, 4), world.Mprobe(mpicx.AnySource, 5), persistent.Start()}
		mpicx.Sendrecv(world, []int{0}, peer, 9, []int{0}, peer, 9).MustWait(ctx)
		if world.Rank() == 0 {
			mpicx.Throw(world.Revoke(ctx))
		}
		mpicx.Throw(expect(pending[1].Wait(ctx), mpicx.ErrRevoked))
		for i, f := range append(pending, persistent.Start(), world.Mprobe(peer, 1), mpicx.MrecvSlice[int](m), mpicx.Sendrecv(world, long, peer, 1, long, peer, 1)) {
			if err := f.Wait(ctx); !errors.Is(err, mpicx.ErrRevoked) {
				return fmt.Errorf("operation %d: %w", i, err)
			}
		}
		return nil
	})
}

// A Sendrecv with a rank that has returned ends, on goroutine ranks, and leaves nothing behind.
func TestSendrecvWithOneThatHasReturned(t *testing.T) {
	oneProcess(t)
	if mpicx.Backend == "ulfm" {
		t.Skip("there it is dead")
	}
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		long := make([]int, 20_000)
		switch world.Rank() {
		case 0:
			settle() // nothing is there for rank 1 when it returns
			for _, ranks := range [][2]int{{1, 2}, {2, 1}} {
				err := mpicx.Sendrecv(world, long, ranks[0], 1, []int{0}, ranks[1], 1).Wait(ctx)
				if e, ok := errors.AsType[*mpicx.MPIError](err); !ok || e.Text != "rank 1 has returned" {
					return fmt.Errorf("with %v: %w", ranks, err)
				}
			}
			return mpicx.Send(world, []int{7}, 2, 2).Wait(ctx)
		case 2:
			got := []int{0}
			if err := mpicx.Recv(world, got, 0, 2).Wait(ctx); err != nil || got[0] != 7 {
				return fmt.Errorf("%v: %w", got, err)
			}
			if done, err := mpicx.Probe[int](world, 0, 1).Test(); done && err == nil { // rank 0 may have returned
				return errors.New("what was cancelled has come")
			}
		}
		return nil
	})
}
