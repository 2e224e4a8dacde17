package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
)

// P8: rank 1 is in a Try on a, whose other rank fails, and does something on b. The context
// around has ended before that, or ends meanwhile. Either way the error is told at once,
// and to the other rank of b, if that waits for rank 1 in a Try (C3).
func TestErrorsOfSiblings(t *testing.T) {
	receive := func(ctx context.Context, b *mpicx.Comm) error {
		return mpicx.Recv(b, make([]byte, 1), 1-b.Rank(), 9).Wait(ctx)
	}
	for late, use := range product([]bool{false, true}, []func(ctx context.Context, b *mpicx.Comm) error{
		func(ctx context.Context, _ *mpicx.Comm) error {
			<-ctx.Done() // it computes
			return ctx.Err()
		},
		receive,
		func(ctx context.Context, b *mpicx.Comm) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return receive(ctx, b)
		},
		func(ctx context.Context, b *mpicx.Comm) error {
			_, err := future.WaitAny(ctx, mpicx.Recv(b, make([]byte, 1), 0, 9), mpicx.Recv(b, make([]byte, 1), 1, 9))
			return err
		},
		func(ctx context.Context, b *mpicx.Comm) error { return b.TryAll(ctx, succeeds) },
	}) {
		inBubble(t, 3, func(ctx context.Context, w *mpicx.Comm) error {
			begin, told := time.Now(), errorOfASibling(ctx, w, receive, use, late)
			mpicx.Throw(isA[*mpicx.PropagatedError](told))
			if w.Rank() < 2 {
				mpicx.Throw(messagesAre(told, "lost"))
			}
			w.Barrier().MustWait(ctx)
			assert.Equal(t, time.Second, time.Since(begin))
			return nil
		})
	}
}

// errorOfASibling returns what each rank's Try has returned: rank 0's has failed after a second.
func errorOfASibling(ctx context.Context, w *mpicx.Comm, receive, use func(context.Context, *mpicx.Comm) error, late bool) error {
	part := func(member bool) *mpicx.Comm {
		if member {
			return w.Split(0, 0).MustGet(ctx)
		}
		return w.Split(mpicx.Undefined, 0).MustGet(ctx)
	}
	a, b := part(w.Rank() < 2), part(w.Rank() > 0)
	switch w.Rank() {
	case 0:
		return a.Try(ctx, failsLater("lost"))
	case 1:
		return a.Try(ctx, func(ctx context.Context) error {
			if late {
				<-ctx.Done()
			}
			return b.Try(ctx, func(ctx context.Context) error { return use(ctx, b) })
		})
	default:
		return b.Try(ctx, func(ctx context.Context) error { return receive(ctx, b) })
	}
}

// failsLater returns a scope's function that fails after a second.
func failsLater(message string) func(context.Context) error {
	return func(context.Context) error {
		time.Sleep(time.Second)
		return errors.New(message)
	}
}

// A rank that was told that a communicator is of no use repairs it with another, in the context
// that the corruption has ended.
func TestRepairInAnEndedContext(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, w *mpicx.Comm) error {
		a, outer := w.Dup().MustGet(ctx), ctx
		return isA[*mpicx.CommCorruptedError](a.Try(ctx, func(ctx context.Context) error {
			_ = a.Guard(ctx, fails(a, 0, errors.New("lost")))
			<-ctx.Done()
			time.Sleep(time.Duration(1-w.Rank()) * time.Second) // rank 1 has to wait
			return w.Dup().MustGet(outer).Barrier().Wait(outer)
		}))
	})
}

// An error ends the context of a Try inside of one whose own has ended, and was told: the
// Waits that are pending there hear of it.
func TestErrorsInsideOfAnEndedContext(t *testing.T) {
	// early: b's Try begins before the error of a.
	for early, use := range product([]bool{false, true}, []string{"waits", "in another Try on a", "late"}) {
		inBubble(t, 2, func(ctx context.Context, w *mpicx.Comm) error {
			begin := time.Now()
			a, b, c := w.Dup().MustGet(ctx), w.Dup().MustGet(ctx), w.Dup().MustGet(ctx)
			if w.Rank() == 0 {
				mpicx.Throw(messagesAre(a.Try(ctx, failsLater("a")), "a"))
				mpicx.Throw(isA[*mpicx.PropagatedError](b.Try(ctx, failsLater("b"))))
				return w.Barrier().Wait(ctx)
			}
			receive := func(ctx context.Context) error { return mpicx.Recv(c, make([]byte, 1), 0, 9).Wait(ctx) }
			inside := func(ctx context.Context) error {
				mpicx.Throw(messagesAre(receive(ctx), "a"))
				switch use {
				case "in another Try on a":
					return a.Try(ctx, receive)
				case "late":
					time.Sleep(time.Second)
				}
				return receive(ctx)
			}
			_ = a.Try(ctx, func(ctx context.Context) error {
				if !early {
					<-ctx.Done()
				}
				assert.ErrorContains(t, b.Try(ctx, inside), "propagated from rank 0: b")
				return nil
			})
			w.Barrier().MustWait(ctx)
			assert.Equal(t, 2*time.Second, time.Since(begin))
			return nil
		})
	}
}

// So does every Wait, on another communicator, with the context of a Try on one that is revoked.
func TestRevokeAroundAWait(t *testing.T) {
	for derived, how := range product([]bool{false, true}, []string{"by its own operation", "by the other's", "late", "by Err", "by Revoked", "by itself"}) {
		inBubble(t, 2, func(ctx context.Context, w *mpicx.Comm) error {
			w.SetErrhandler(mpicx.ErrorsReturn)
			a := w.Dup().MustGet(ctx)
			b := map[bool]*mpicx.Comm{false: w, true: a}[derived].Dup().MustGet(ctx)
			if w.Rank() == 0 {
				time.Sleep(time.Second)
				mpicx.Throw(a.Revoke(ctx))
				time.Sleep(time.Hour) // until the other rank has looked at its context
				mpicx.Send(b, []byte{1}, 1, 9).MustWait(ctx)
				return b.Barrier().Wait(ctx) // a receive that stays pending would need this rank
			}
			r, outer := mpicx.Recv(b, make([]byte, 1), 0, 9), ctx
			err := a.Try(ctx, func(ctx context.Context) error {
				if how == "late" || how == "by Err" || how == "by Revoked" {
					<-ctx.Done()
				}
				switch how {
				case "by its own operation":
					assert.ErrorIs(t, a.Barrier().Wait(ctx), mpicx.ErrRevoked)
				case "by Err":
					assert.ErrorIs(t, a.Err(), mpicx.ErrRevoked)
				case "by Revoked":
					assert.True(t, a.Revoked())
				case "by itself":
					assert.NoError(t, a.Revoke(ctx))
				default:
					assert.ErrorIs(t, r.Wait(ctx), mpicx.ErrRevoked)
				}
				assert.Eventually(t, func() bool { return ctx.Err() != nil }, time.Minute, time.Second)
				assert.ErrorIs(t, r.Wait(ctx), mpicx.ErrRevoked)
				return r.Wait(outer)
			})
			return first(explain(err, "%s", how), b.Barrier().Wait(ctx))
		}, hook.Backend[mpicx.Option]("ulfm"))
	}
}

// An error of the world that a TryAll inside has dealt with ends the context of the Try around it
// on what is derived, in vain: Waits and scopes continue in it.
func TestTryAllInAnEndedContext(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, w *mpicx.Comm) error {
		return w.Dup().MustGet(ctx).Try(ctx, func(ctx context.Context) error {
			err := w.TryAll(ctx, func(context.Context) error {
				if w.Rank() == 0 {
					time.Sleep(time.Second) // until the other is here
					return errors.New("lost")
				}
				return nil
			})
			assert.Error(t, err)
			<-ctx.Done()
			return w.TryAll(ctx, func(ctx context.Context) error { return ctx.Err() })
		})
	})
}

// H5: rank 0 has the result of an Agree on a communicator that is revoked, closes that, and signals
// on the parent. Rank 1 hears of the signal before the result, and gets both.
func TestH5AgreeCloseAndSignal(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		c := dup(ctx, world)
		mpicx.Throw(c.Revoke(ctx))
		settle()
		agree := c.Agree(5 - 2*world.Rank())
		if world.Rank() == 0 {
			if flag, err := agree.Get(ctx); flag != 1 || err != nil {
				return fmt.Errorf("Agree: %d %w", flag, err)
			}
			return first(c.Close(ctx), propagated(world.SignalError(ctx, 9), 9))
		}
		mpicx.Throw(propagated(agree.Wait(ctx), 9))
		if flag, err := agree.Get(ctx); flag != 1 || err != nil {
			return fmt.Errorf("Agree, after the error: %d %w", flag, err)
		}
		return c.Close(ctx)
	}, hook.Backend[mpicx.Option]("ulfm"), atRank(1, func(c transport.Comm) transport.Comm { return slowChildren{c} }))
}

// slowChildren is a side of the world. The error channels of what is made from it are slow, its own is not.
type slowChildren struct{ transport.Comm }

func (c slowChildren) Sub(name transport.Name, members []int) (transport.Comm, error) {
	made, err := c.Comm.Sub(name, members)
	if err != nil || name == transport.ErrorChannelName() {
		return made, err
	}
	return slowErrors(made), nil
}
