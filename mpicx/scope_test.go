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

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A context that ends because of an error of an outer scope's communicator, inside of a Guard on
// another, says so by that error.
func TestAnInternalErrorNeverLeaks(t *testing.T) {
	oneProcess(t)
	for rank := range 3 {
		runBothTimes(t, 20, 3, func(ctx context.Context, world *mpicx.Comm) error {
			child := dup(ctx, world)
			_ = world.Try(ctx, func(ctx context.Context) error {
				return child.Guard(ctx, func(ctx context.Context) error {
					short, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					if world.Rank() == rank {
						return world.SignalError(short, 7)
					}
					err := child.Barrier().Wait(short)
					require.NotErrorIs(t, err, context.Canceled)
					require.True(t, is[*mpicx.PropagatedError](err) || is[*mpicx.CommCorruptedError](err), "%v", err)
					return err
				})
			})
			return nil
		})
	}
}

// A deadline that is set inside of a Try whose context an error has ended still ends
// a Wait.
func TestADeadlineInsideOfAnInterruptedTry(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				_ = world.Try(ctx, func(context.Context) error { return errors.New("inner") })
				world.Barrier().MustWait(ctx)
				return mpicx.Send(world, []int{1}, 0, 99).Wait(ctx)
			}
			<-ctx.Done()
			type key struct{}
			ctx = context.WithValue(ctx, key{}, "kept")
			inner := world.Try(ctx, func(ctx context.Context) error {
				if ctx.Value(key{}) != "kept" {
					return errors.New("the values of the context are lost")
				}
				return world.Barrier().Wait(ctx)
			})
			mpicx.Throw(isA[*mpicx.PropagatedError](inner))
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			message := mpicx.Recv(world, make([]int, 1), 1, 99)
			if late := message.Wait(short); !errors.Is(late, context.DeadlineExceeded) {
				return fmt.Errorf("the deadline: %w", late)
			}
			world.Barrier().MustWait(ctx)
			return message.Wait(ctx)
		})
		return err
	})
}

// A verdict that a rank leaves by is no part of the next one, as far as types go: the
// loop of the README does the same at all ranks.
func TestAVerdictHidesTheOneBefore(t *testing.T) {
	oneProcess(t)
	cause := &placeError{1, 2}
	runBoth(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		left := world.Guard(ctx, func(ctx context.Context) error {
			err := world.Try(ctx, fails(world, 1, cause))
			return fails(world, 1, err)(ctx) // it gives up
		})
		if world.Rank() == 1 {
			left = world.Barrier().Wait(ctx)
			mpicx.Throw(expect(left, cause))
		}
		mpicx.Throw(isA[*mpicx.CommCorruptedError](left))
		require.False(t, is[*mpicx.PropagatedError](left), "the corruption is taken for what it was raised by: %v", left)
		return nil
	})
}

// Try on a communicator of which nobody can be told any more does not lose the error
// that its function ended with: a Try around it, on the communicator of that error, has what all
// its ranks have.
func TestTryOnARevokedCommunicatorKeepsTheError(t *testing.T) {
	oneProcess(t)
	mortal(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		child, cause := dup(ctx, world), errors.New("a cause")
		// Revoke would end a Dup that some rank is still in.
		mpicx.Throw(child.TryAll(ctx, func(context.Context) error { return nil }))
		err := child.Try(ctx, func(ctx context.Context) error {
			mpicx.Throw(world.Revoke(ctx))
			if world.Rank() == 1 {
				return cause
			}
			return world.Try(ctx, func(context.Context) error {
				return child.Barrier().Wait(ctx) // the context of the Try on the world has ended
			})
		})
		mpicx.Throw(messagesAre(err, cause.Error()))
		err = world.Try(ctx, func(context.Context) error { return cause })
		if !errors.Is(err, mpicx.ErrRevoked) || !errors.Is(err, cause) {
			return fmt.Errorf("on the world: got %w", err)
		}
		return child.Barrier().Wait(ctx)
	})
}

// The context of a TryAll that ends while the votes are counted ends it at all ranks or at none.
func TestTryAllWhoseContextEnds(t *testing.T) {
	oneProcess(t)
	for k := range 1000 {
		var failed atomic.Int32
		mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			mine, cancel := context.WithCancel(ctx)
			defer cancel()
			err := world.TryAll(mine, func(context.Context) error {
				if world.Rank() == 0 {
					go func() {
						for range k % 30 {
							runtime.Gosched()
						}
						cancel()
					}()
				}
				return nil
			})
			if err != nil {
				failed.Add(1)
			}
			if _, told := errors.AsType[*mpicx.PropagatedError](err); err != nil && !told {
				_ = world.Barrier().Wait(ctx) // where this rank is told what the others know
			}
			return nil
		})
		require.Contains(t, []int32{0, 3}, failed.Load())
	}
}

// What a rank begins after it has raised an error reaches nobody, and ends with the error (T1). The
// other rank's buffer shows it: that rank does not consent to the end of the round before.
func TestNothingIsSentAfterAnErrorIsRaised(t *testing.T) {
	oneProcess(t)
	type begin = func(c *mpicx.Comm, buf []int) future.Waiter
	send := func(c *mpicx.Comm, _ []int) future.Waiter { return mpicx.Send(c, []int{1}, 1-c.Rank(), 0) }
	synchronous := func(c *mpicx.Comm, _ []int) future.Waiter { return mpicx.Ssend(c, []int{1}, 1-c.Rank(), 0) }
	persistent := func(c *mpicx.Comm, _ []int) future.Waiter { return mpicx.SendInit(c, []int{1}, 1-c.Rank(), 0).Start() }
	receive := func(c *mpicx.Comm, buf []int) future.Waiter { return mpicx.Recv(c, buf, 1-c.Rank(), 0) }
	exchange := func(c *mpicx.Comm, buf []int) future.Waiter {
		return mpicx.Sendrecv(c, []int{1}, 1-c.Rank(), 0, buf, 1-c.Rank(), 0)
	}
	bcast := func(c *mpicx.Comm, buf []int) future.Waiter { buf[0] = c.Rank(); return mpicx.Bcast(c, buf, 1) }
	gather := func(c *mpicx.Comm, buf []int) future.Waiter {
		return mpicx.Gather(c, []int{c.Rank()}, buf[:2-2*c.Rank()], 0)
	}
	for name, pair := range map[string]struct{ before, after begin }{
		"Send": {receive, send}, "Ssend": {receive, synchronous}, "Start": {receive, persistent}, "Recv": {synchronous, receive},
		"Sendrecv": {exchange, exchange}, "Bcast": {bcast, bcast}, "Gather": {gather, gather},
	} {
		t.Run(name, func(t *testing.T) {
			bothBackends(t, func(t *testing.T, backend mpicx.Option) {
				pending, begun := make(chan struct{}), make(chan struct{})
				require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
					buf := make([]int, 2)
					err := world.Try(ctx, func(ctx context.Context) error {
						if world.Rank() == 0 {
							f := pair.before(world, buf)
							close(pending)
							<-begun
							return f.Wait(ctx)
						}
						<-pending
						go world.Signal(ctx, errors.New("disk full"))
						<-ctx.Done()
						f := pair.after(world, buf)
						close(begun)
						return f.Wait(ctx)
					})
					p, ok := errors.AsType[*mpicx.PropagatedError](err)
					if world.Rank() == 1 && name == "Bcast" {
						buf[0] = 0
					}
					if !ok || len(p.Failures) != 1 || buf[0] != 0 || buf[1] != 0 {
						return fmt.Errorf("got %v and the error %w", buf, err)
					}
					return world.Barrier().Wait(ctx)
				}, mpicx.WithRanks(2), backend))
			})
		})
	}
}

// What waits for the verdict after its rank has raised an error is named as what the program has begun.
func TestWithheldIsNamed(t *testing.T) {
	oneProcess(t)
	runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		_ = world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 { // it looks for no error until then
				time.Sleep(time.Minute)
				return nil
			}
			go world.Signal(ctx, errors.New("disk full"))
			<-ctx.Done()
			for name, f := range map[string]future.Waiter{"Barrier": world.Barrier(), "Recv": mpicx.Recv(world, []int{0}, 0, 1)} {
				short, cancel := context.WithTimeout(context.Background(), time.Second)
				err := f.Wait(short)
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, name+" on world")
			}
			return nil
		})
		return world.Barrier().Wait(ctx)
	})
}

// A corruption that ends a Wait because it has ended the context of a Guard on an ancestor is final for the
// communicator of that Wait, too (C4): an older ancestor's error is not told there any more.
func TestFinalForWhoWaitedInAGuard(t *testing.T) {
	oneProcess(t)
	runBothTimes(t, 200, 4, func(ctx context.Context, world *mpicx.Comm) error {
		var first, second error
		_ = world.TryAll(ctx, func(ctx context.Context) error {
			parent := dup(ctx, world)
			return parent.Guard(ctx, func(ctx context.Context) error {
				child := dup(ctx, parent)
				if world.Rank() == 0 {
					return child.Guard(ctx, func(context.Context) error { return errors.New("diverged") })
				}
				short, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				first = mpicx.Recv(child, []int{0}, 0, 1).Wait(short)
				second = mpicx.Recv(child, []int{0}, 0, 1).Wait(ctx)
				return second
			})
		})
		if _, final := errors.AsType[*mpicx.CommCorruptedError](first); final {
			mpicx.Throw(isA[*mpicx.CommCorruptedError](second))
		}
		return nil
	})
}

// What a function returns may wrap the scope's error and the end of its context, or be joined with
// them: errors.Is finds the rest, and not that a context has ended (T2).
func TestOwnErrorAroundOthers(t *testing.T) {
	own := errors.New("close failed")
	for name, around := range map[string]func(err, end error) error{
		"wrapped":        func(err, end error) error { return fmt.Errorf("%w: %w (%w)", own, err, end) },
		"joined":         func(err, end error) error { return errors.Join(err, end, own) },
		"inside":         func(err, end error) error { return fmt.Errorf("%w: %w", own, errors.Join(end, err)) },
		"end, joined":    func(_, end error) error { return errors.Join(end, own) },
		"end, explained": func(_, end error) error { return fmt.Errorf("step 3: %w", errors.Join(own, end)) },
		"end, in a text": func(_, end error) error { return fmt.Errorf("%w, and %w", end, own) },
	} {
		t.Run(name, func(t *testing.T) {
			runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
				err := world.TryAll(ctx, func(ctx context.Context) error {
					if world.Rank() == 0 {
						return errors.New("disk full")
					}
					err := world.Barrier().Wait(ctx)
					<-ctx.Done()
					return around(err, ctx.Err())
				})
				mpicx.Throw(messagesAre(err, "disk full"))
				require.Equal(t, world.Rank() == 1, errors.Is(err, own))
				if strings.HasPrefix(name, "end") {
					require.EqualError(t, err, "mpicx: error propagated from rank 0: disk full")
					require.NotErrorIs(t, err, context.Canceled)
				}
				return nil
			})
		})
	}
}

// A Guard whose context a corruption ends, inside a Try that has an error already, waits for nobody
// (C1). It returns that error, and not the end of its context, which would tell all ranks nothing.
func TestGuardInsideATryThatHasAnError(t *testing.T) {
	runBoth(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		child := dup(ctx, world)
		var inGuard error
		err := world.TryAll(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 {
				return errors.New("disk full")
			}
			_ = world.Barrier().Wait(ctx)
			inGuard = child.Guard(context.Background(), func(ctx context.Context) error {
				<-ctx.Done() // rank 0 corrupts the world
				return ctx.Err()
			})
			return inGuard
		})
		if world.Rank() == 0 {
			_ = world.Guard(ctx, func(context.Context) error { return err })
		} else if errors.Is(inGuard, context.Canceled) || !is[*mpicx.PropagatedError](inGuard) && !is[*mpicx.CommCorruptedError](inGuard) {
			return fmt.Errorf("got %w", inGuard)
		}
		return nil
	})
}

// What an error of another communicator has ended a Wait for is excused: the program was told why
// it stays pending, and that another rank never calls it is no news. Close gives its communicator
// up.
func TestWaitThatAnotherErrorInterrupts(t *testing.T) {
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for name, wait := range map[string]func(context.Context, *mpicx.Comm) error{
			"Barrier": func(ctx context.Context, c *mpicx.Comm) error { return c.Barrier().Wait(ctx) },
			"Dup":     func(ctx context.Context, c *mpicx.Comm) error { return c.Dup().Wait(ctx) },
			"Close":   func(ctx context.Context, c *mpicx.Comm) error { return c.Close(ctx) },
		} {
			t.Run(name, func(t *testing.T) {
				for range 30 {
					mpicxtest.RunWith(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
						apart := dup(ctx, world)
						err := apart.TryAll(ctx, func(ctx context.Context) error {
							inner := world.Dup().MustGet(ctx)
							if world.Rank() == 2 {
								return errors.New("disk full")
							}
							return wait(ctx, inner)
						})
						return isA[*mpicx.PropagatedError](err)
					}, backend)
				}
			})
		}
	})
}

// A rank's error is in the round that its Try has decided on, though another goroutine of the rank
// may consent to the end of that round at any moment.
func TestInnerTryInAGoroutine(t *testing.T) {
	oneProcess(t)
	var all [2][2]string // by TryAll and rank
	runBothTimes(t, 100, 2, func(ctx context.Context, world *mpicx.Comm) error {
		me := world.Rank()
		never := func(ctx context.Context) error { return mpicx.Recv(world, []int{0}, 1-me, 77).Wait(ctx) }
		for k := range all {
			err := world.TryAll(ctx, func(ctx context.Context) error {
				if me == k {
					return world.Signal(ctx, fmt.Errorf("signal %d", k))
				}
				inner := make(chan error)
				go func() {
					inner <- world.Try(ctx, func(ctx context.Context) error {
						if k == 0 {
							return fmt.Errorf("inner %d", me)
						}
						return never(ctx)
					})
				}()
				if k == 1 {
					<-inner
					return errors.New("own")
				}
				err := never(ctx)
				<-inner
				return err
			})
			mpicx.Throw(isA[*mpicx.PropagatedError](err))
			all[k][me] = told(err)
		}
		world.Barrier().MustWait(ctx)
		require.Equal(t, all[0][0], all[0][1])
		require.Equal(t, all[1][0], all[1][1])
		return world.Barrier().Wait(ctx)
	})
}

// A rank whose function gives up because an inner error has ended its context, before
// it has entered the inner Try, has failed in the outer Try: all are told.
func TestWhatTryReturnsAllHave(t *testing.T) {
	oneProcess(t)
	var outer [3]error
	runBothTimes(t, 20, 3, func(ctx context.Context, world *mpicx.Comm) error {
		outer[world.Rank()] = world.Try(ctx, func(ctx context.Context) error {
			if world.Rank() == 0 {
				<-ctx.Done() // it computes
				return ctx.Err()
			}
			inner := world.Try(ctx, func(ctx context.Context) error { return &placeError{world.Rank(), 1} })
			mpicx.Throw(isA[*mpicx.PropagatedError](inner))
			return world.Barrier().Wait(ctx)
		})
		world.Barrier().MustWait(ctx)
		for _, err := range outer {
			require.Equal(t, told(outer[0]), told(err))
			require.Len(t, err.(*mpicx.PropagatedError).Failures, 2) // the inner error, again
		}
		return world.Barrier().Wait(ctx)
	})
}

// The ranks that leave a child by its error, and their parent's Try with that, are
// told by one error of the parent.
func TestAChildsErrorLeavesTheParentAsOne(t *testing.T) {
	oneProcess(t)
	runBothTimes(t, 200, 3, func(ctx context.Context, world *mpicx.Comm) error {
		var child *mpicx.Comm
		mpicx.Throw(world.TryAll(ctx, func(ctx context.Context) (err error) {
			child, err = world.Split(0, world.Rank()).Get(ctx)
			return err
		}))
		err := world.TryAll(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				return child.SignalError(ctx, 44)
			}
			return child.Barrier().Wait(ctx)
		})
		if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || len(p.Failures) != world.Size() {
			return fmt.Errorf("the parent's: %w", err)
		}
		return world.TryAll(ctx, func(context.Context) error { return nil })
	})
}

// A nested Try handles its error, and the outer one continues with a context that has not ended. An
// error that wraps the one which the inner Try has returned is a new one.
func TestNestedTry(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			inner := world.Try(ctx, func(ctx context.Context) error {
				if world.Rank() == 1 {
					settle()
					return &placeError{1, 7}
				}
				err := world.Barrier().Wait(ctx)
				if ctx.Err() == nil {
					return errors.New("the inner context has not ended")
				}
				return err
			})
			mpicx.Throw(propagated(inner, 107))
			if ctx.Err() != nil {
				return fmt.Errorf("the outer context has ended: %w", context.Cause(ctx))
			}
			mpicx.Throw(exchange(ctx, world, 0))
			if world.Rank() == 2 {
				settle()
				return fmt.Errorf("recovery failed: %w", inner)
			}
			return world.Barrier().Wait(ctx)
		})
		mpicx.Throw(failedAt(err, 2))
		if !strings.Contains(err.Error(), "recovery failed: mpicx: error propagated from rank 1") {
			return fmt.Errorf("got %w", err)
		}
		return exchange(ctx, world, 0)
	})
}
