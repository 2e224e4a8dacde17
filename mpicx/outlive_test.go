package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Goroutines that outlive the function of their Try, and what it has made.
func TestWhatOutlivesATry(t *testing.T) {
	oneProcess(t)
	own := errors.New("rank 1 fails")
	fails := func(w *mpicx.Comm) error {
		if w.Rank() == 1 {
			return own
		}
		return nil
	}
	for name, program := range map[string]func(context.Context, *mpicx.Comm) error{
		"the scope's end ends a Wait": func(ctx context.Context, w *mpicx.Comm) error {
			ended := make(chan error, 2)
			err := w.TryAll(ctx, func(ctx context.Context) error {
				never := mpicx.Recv(w, []int{0}, w.Rank(), 9)
				go func() { ended <- never.Wait(ctx) }()
				go func() {
					_, err := future.WaitAny(ctx, mpicx.Recv(w, []int{0}, w.Rank(), 9))
					ended <- err
				}()
				time.Sleep(time.Nanosecond) // until both wait
				return nil
			})
			return errors.Join(err, expect(<-ended, context.Canceled), expect(<-ended, context.Canceled))
		},
		"an operation keeps the error that has ended it": func(ctx context.Context, w *mpicx.Comm) error {
			var never *future.Future[mpicx.Status]
			first := w.TryAll(ctx, func(context.Context) error {
				never = mpicx.Recv(w, []int{0}, w.Rank(), 9)
				return fails(w)
			})
			var late error
			second := w.TryAll(ctx, func(ctx context.Context) error {
				if w.Rank() == 1 {
					return errors.New("another")
				}
				<-ctx.Done()
				late = never.Wait(ctx)
				return nil
			})
			if w.Rank() != 1 && told(late) != told(first) || told(second) == told(first) {
				return fmt.Errorf("got %q, then %q, and %q of an operation that the first has ended", told(first), told(second), told(late))
			}
			return nil
		},
		"it takes no error from the next Try": func(ctx context.Context, w *mpicx.Comm) error {
			var inside context.Context
			var never *future.Future[mpicx.Status]
			if err := w.TryAll(ctx, func(ctx context.Context) error {
				inside, never = ctx, mpicx.Recv(w, []int{0}, w.Rank(), 9)
				return nil
			}); err != nil {
				return err
			}
			if w.Rank() == 1 {
				return expect(w.TryAll(ctx, func(context.Context) error { return own }), own)
			}
			for w.Err() == nil {
				time.Sleep(time.Nanosecond)
			}
			_ = never.Wait(inside)
			if err := w.TryAll(ctx, func(context.Context) error { return nil }); err == nil {
				return errors.New("a goroutine of the Try before has taken the error")
			}
			return nil
		},
		"Close waits for nobody": func(ctx context.Context, w *mpicx.Comm) error {
			var closed error
			err := w.TryAll(ctx, func(ctx context.Context) error {
				d, err := w.Dup().Get(ctx)
				if err != nil || w.Rank() == 1 {
					return fails(w)
				}
				closed = d.Close(ctx)
				return nil
			})
			if closed != nil {
				return fmt.Errorf("Close: %w", closed)
			}
			if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || len(p.Failures) != 1 || p.Failures[0].Rank != 1 {
				return fmt.Errorf("TryAll returns %w", err)
			}
			return nil
		},
		"an ancestor's error ends a Signal": func(ctx context.Context, w *mpicx.Comm) error {
			err := w.TryAll(ctx, func(ctx context.Context) error {
				if w.Rank() == 1 {
					time.Sleep(time.Nanosecond) // until the others signal
					return own
				}
				d, err := w.Dup().Get(ctx)
				if err != nil {
					return err
				}
				return d.TryAll(ctx, func(ctx context.Context) error { return d.Signal(ctx, errors.New("of d")) })
			})
			if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || len(p.Failures) != 1 || p.Failures[0].Rank != 1 {
				return fmt.Errorf("TryAll returns %w", err)
			}
			return nil
		},
		"an ancestor's error comes out of a Guard that has another": func(ctx context.Context, w *mpicx.Comm) error {
			d, err := w.Dup().Get(ctx)
			if err != nil {
				return err
			}
			err = d.Guard(ctx, func(ctx context.Context) error {
				if w.Rank() == 1 {
					time.Sleep(time.Nanosecond) // until the others wait
					return w.Signal(ctx, own)
				}
				err := d.Barrier().Wait(ctx)
				_ = d.Barrier().Wait(ctx) // until rank 1 has left its Guard
				return err
			})
			if _, ok := err.(*mpicx.PropagatedError); !ok {
				return fmt.Errorf("Guard returns %w", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothBackends(t, func(t *testing.T, backend mpicx.Option) {
				synctest.Test(t, func(t *testing.T) {
					require.NoError(t, mpicx.Run(t.Context(), program, mpicx.WithRanks(3), backend))
				})
			})
		})
	}
}

func expect(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("got %w, expected %v", err, want)
	}
	return nil
}

// So does the Wait of a goroutine whose context has ended in vain, by an error of an inner Try.
func TestWhatOutlivesATryInVain(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for i := range 200 {
			n := 2 + i%4
			err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				ended := make(chan error, 1)
				err := world.TryAll(ctx, func(ctx context.Context) error {
					_ = world.TryAll(ctx, func(context.Context) error {
						if world.Rank() == 1 {
							return errors.New("lost")
						}
						return nil
					})
					go func() { ended <- mpicx.Recv(world, []int{0}, world.Rank(), 9).Wait(ctx) }()
					return nil
				})
				if err != nil {
					return err
				}
				if err := <-ended; !errors.Is(err, context.Canceled) {
					return fmt.Errorf("got %w", err)
				}
				return nil
			}, mpicx.WithRanks(n), backend)
			require.NoError(t, err)
		}
	})
}
