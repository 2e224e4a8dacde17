package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A scope is Try, TryAll or Guard.
type scope = func(c *mpicx.Comm, ctx context.Context, fn func(context.Context) error) error

// C3: a panic, also in a goroutine of an error group, continues with its own stack where the group's
// error is returned. Peers get a corruption, and Run returns the panic.
func TestPanicGoesOn(t *testing.T) {
	oneProcess(t)
	type program = func(ctx context.Context, world *mpicx.Comm) error
	alone := func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			explode()
		}
		return world.Barrier().Wait(ctx)
	}
	grouped := func(ctx context.Context, world *mpicx.Comm) error {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) {
			defer future.Catch(&err)
			mpicx.Throw(alone(ctx, world))
			return nil
		})
		return g.Wait()
	}
	in := func(scope scope, fn program) program {
		return func(ctx context.Context, world *mpicx.Comm) error {
			return scope(world, ctx, func(ctx context.Context) error { return fn(ctx, world) })
		}
	}
	thrown := func(ctx context.Context, world *mpicx.Comm) error {
		mpicx.Throw(grouped(ctx, world))
		return nil
	}
	for name, fn := range map[string]program{
		"Run": grouped, "Guard": in((*mpicx.Comm).Guard, grouped), "Try": in((*mpicx.Comm).Try, grouped),
		"TryAll": in((*mpicx.Comm).TryAll, grouped), "thrown": in((*mpicx.Comm).Try, thrown),
		"no goroutine, Run": alone, "no goroutine, Guard": in((*mpicx.Comm).Guard, alone), "no goroutine, Try": in((*mpicx.Comm).Try, alone),
	} {
		t.Run(name, func(t *testing.T) {
			var corruptions atomic.Int32
			err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				err := fn(ctx, world)
				if corruption(err, 1) == nil {
					corruptions.Add(1)
				}
				return err
			}, mpicx.WithRanks(3))
			p, ok := errors.AsType[*mpicx.PanicError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, 1, p.Rank)
			require.Equal(t, "boom", p.Value)
			require.Regexp(t, `explode(.*\n)*.*goroutines_test\.go`, string(p.Stack))
			require.EqualValues(t, 2, corruptions.Load())
			require.Equal(t, 1, strings.Count(err.Error(), "[running"), "one stack")
			require.Regexp(t, `^rank 1: mpicx: rank 1 panicked: boom\n(.*\n)*ranks 0, 2: mpicx: communicator corrupted by rank 1: panic: boom$`, err.Error())
		})
	}
}

func explode() { panic("boom") }

// A goroutine that waits in a scope of its own, on any communicator, is told of the error of the scope
// around it (P8). It does not matter whether another goroutine was told before, nor whether this one
// begins before or after that.
func TestGoroutineIsInAScope(t *testing.T) {
	oneProcess(t)
	none := func(_ *mpicx.Comm, ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }
	// Which goroutine begins first, or a second after the other.
	for sibling, delays := range product([]bool{false, true}, [][2]time.Duration{{1, 0}, {0, 1}, {0, 2 * time.Second}}) {
		for around, inside := range product([]scope{(*mpicx.Comm).Try, (*mpicx.Comm).Guard}, []scope{none, (*mpicx.Comm).Try, (*mpicx.Comm).Guard}) {
			onBackends(t, 2, func(ctx context.Context, _ string, world *mpicx.Comm) error {
				return explain(inAScope(ctx, world, around, inside, sibling, delays), "sibling %v, delays %v", sibling, delays)
			})
		}
	}
}

// inAScope has rank 0 fail in a scope in which one goroutine of rank 1 waits, and another one in a scope of its own.
func inAScope(ctx context.Context, world *mpicx.Comm, around, inside scope, sibling bool, delays [2]time.Duration) error {
	a, b := world.Dup().MustGet(ctx), world.Dup().MustGet(ctx)
	on := map[bool]*mpicx.Comm{false: a, true: b}[sibling]
	err := around(a, ctx, func(ctx context.Context) error {
		if world.Rank() == 0 {
			settle()
			return errors.New("lost")
		}
		var g errgroup.Group
		g.Go(func() error { time.Sleep(delays[0]); return a.Barrier().Wait(ctx) })
		g.Go(func() error {
			time.Sleep(delays[1])
			return inside(on, ctx, func(ctx context.Context) error { return mpicx.Recv(on, []int{0}, 0, 9).Wait(ctx) })
		})
		return g.Wait()
	})
	if err == nil || !strings.Contains(err.Error(), "lost") {
		return fmt.Errorf("got %v, expected the error of rank 0", err)
	}
	world.Barrier().MustWait(ctx)
	mpicx.Send(b, []int{1}, 1-world.Rank(), 9) // what is pending needs no rank that has returned
	return world.Barrier().Wait(ctx)
}

// A goroutine that has outlived its Try gets the error that has ended its operation, however late it asks and
// whatever has ended its context. It takes no error of a later Try, which would leave its rank a Try behind.
func TestListenerKeepsTheErrorOfItsTry(t *testing.T) {
	over := errors.New("the program has ended it")
	waits := []func(context.Context, future.Waiter) error{
		func(ctx context.Context, f future.Waiter) error { return f.Wait(ctx) },
		func(ctx context.Context, f future.Waiter) error { _, err := future.WaitAny(ctx, f); return err },
		func(ctx context.Context, f future.Waiter) error { return future.WaitAll(ctx, f) },
		func(_ context.Context, f future.Waiter) error {
			return yielding(func() error { _, err := f.Test(); return err })
		},
	}
	runBoth(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		for k := range 3000 {
			ctx, end := context.WithCancelCause(ctx)
			told := make(chan error, 1)
			err := world.TryAll(ctx, func(context.Context) error {
				recv := mpicx.Recv(world, []int{0}, world.Rank(), 0)
				go func() { told <- waits[k%len(waits)](ctx, recv) }()
				if world.Rank() > 0 {
					return fmt.Errorf("error %d", k)
				}
				return nil
			})
			end(over)
			require.ErrorContains(t, err, fmt.Sprint("error ", k))
			require.EqualError(t, <-told, err.Error(), "the listener's Wait")
		}
		return nil
	})
}

// yielding asks until there is an error, while others continue.
func yielding(ask func() error) error {
	for k := 1; ; k++ {
		if err := ask(); err != nil {
			return err
		}
		if k%20 == 0 {
			runtime.Gosched()
		}
	}
}

// A rank that looks for errors until it has one has consented to no other (P2): what it raises next is in the same
// verdict as what others do.
func TestWhoLooksHasConsentedToWhatItIsTold(t *testing.T) {
	oneProcess(t)
	for _, name := range []string{"Err", "Test"} {
		runBoth(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
			for k := range 300 {
				never := mpicx.Recv(world, []int{0}, world.Rank(), 0)
				look := map[string]func() error{"Err": world.Err, "Test": func() error { _, err := never.Test(); return err }}[name]
				scope := func(context.Context) error { return yielding(look) }
				if world.Rank() == k%4 {
					scope = func(context.Context) error { return errors.New("one") }
				}
				_ = world.TryAll(ctx, scope)
				err := world.TryAll(ctx, func(context.Context) error { return errors.New("all") })
				mpicx.Throw(explain(failedAt(err, indices(4)...), "%s, round %d", name, k))
			}
			return nil
		})
	}
}

// A rank that signals in a Try while another rank revokes the communicator gets ErrRevoked, or its own error if
// that came first. That an ancestor is revoked does not concern it.
func TestSignalMeetsRevocation(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		for k := range 5000 {
			parent := world.Dup().MustGet(ctx)
			c := parent
			if k%2 == 1 {
				c = parent.Dup().MustGet(ctx)
			}
			if world.Rank() == 0 {
				_ = parent.Revoke(ctx) // an error, if rank 1's came first
			} else {
				var told error
				_ = c.Try(ctx, func(ctx context.Context) error {
					told = c.SignalError(ctx, 7)
					return told
				})
				own := propagated(told, 7) == nil
				require.True(t, own || c == parent && errors.Is(told, mpicx.ErrRevoked), "round %d: %v", k, told)
			}
			world.Barrier().MustWait(ctx)
		}
		return nil
	}, hook.Backend[mpicx.Option]("ulfm"))
}

// A Guard that a peer's corruption has ended returns the corruption with the error that its function returned.
func TestGuardKeepsItsOwnError(t *testing.T) {
	runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		c := world.Dup().MustGet(ctx)
		if world.Rank() == 0 {
			return expect(c.Guard(ctx, func(context.Context) error { return errClose }), errClose)
		}
		var inside context.Context
		err := c.Guard(ctx, func(ctx context.Context) error {
			inside = ctx
			_ = c.Barrier().Wait(ctx) // until the corruption is known
			return errClose
		})
		mpicx.Throw(expect(err, errClose))
		k, _ := errors.AsType[*mpicx.CommCorruptedError](err)
		require.EqualError(t, mpicx.Recv(world, []int{0}, 1, 0).Wait(inside), k.Error(), "T3: afterwards")
		return corruption(k, 0)
	})
}

// A goroutine that outlives its Try may begin another with the context of the first: that one returns the error
// with which the first is over, and calls no function.
func TestTryThatBeginsLate(t *testing.T) {
	runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		var inside context.Context
		first := world.TryAll(ctx, func(ctx context.Context) error {
			inside = ctx
			return fails(world, 0, errors.New("disk full"))(ctx)
		})
		for _, scope := range []scope{(*mpicx.Comm).Try, (*mpicx.Comm).TryAll, (*mpicx.Comm).Guard} {
			err := scope(world, inside, func(context.Context) error { panic("called") })
			require.EqualError(t, err, first.Error())
		}
		return world.TryAll(ctx, func(ctx context.Context) error { return world.Barrier().Wait(ctx) })
	})
}

// An error that a rank raises as soon as its TryAll has returned belongs to the next scope of ranks that have not
// returned yet, even if another goroutine of theirs is waiting.
func TestTryAllEndsWithItsCount(t *testing.T) {
	oneProcess(t)
	runBoth(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		return world.Try(ctx, func(ctx context.Context) error {
			for k := range 1000 {
				listened := make(chan error, 1)
				recv := mpicx.Recv(world, []int{0}, world.Rank(), 0)
				go func() { listened <- recv.Wait(ctx) }()
				mpicx.Throw(world.TryAll(ctx, succeeds))
				err := world.Try(ctx, fails(world, k%4, fmt.Errorf("error %d", k)))
				mpicx.Throw(messagesAre(err, fmt.Sprint("error ", k)))
				require.EqualError(t, <-listened, err.Error(), "round %d", k)
			}
			return nil
		})
	})
}
