package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// What a function has joined with the end of its context is found at this rank (T2).
func TestTryJoinedWithTheEndOfItsContext(t *testing.T) {
	closing := errors.New("close")
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		for _, joined := range []func(error) error{
			func(err error) error { return errors.Join(err, closing) },
			func(err error) error { return fmt.Errorf("step 3: %w", errors.Join(closing, err)) },
			func(err error) error { return fmt.Errorf("%w, and %w", err, closing) },
		} {
			err := world.TryAll(ctx, func(ctx context.Context) error {
				if world.Rank() == 1 {
					return errors.New("disk full")
				}
				<-ctx.Done()
				return joined(ctx.Err())
			})
			require.EqualError(t, err, "mpicx: error propagated from rank 1: disk full")
			require.Equal(t, world.Rank() == 0, errors.Is(err, closing))
			require.NotErrorIs(t, err, context.Canceled)
		}
		return nil
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

// An error of a derived communicator, and one of its ancestor, in a TryAll on each: whichever comes first, all
// ranks are in step afterwards.
func TestTryAllOnTwoCommunicators(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		var row *mpicx.Comm
		require.NoError(t, world.TryAll(ctx, func(ctx context.Context) error {
			row = world.Split(world.Rank()/2, 0).MustGet(ctx)
			return nil
		}))
		for k := range 300 {
			err := world.TryAll(ctx, func(ctx context.Context) error {
				err := row.TryAll(ctx, func(ctx context.Context) error {
					switch world.Rank() {
					case 0:
						return errors.New("row")
					case 3:
						for range k % 30 {
							runtime.Gosched()
						}
						return world.Signal(ctx, errors.New("world"))
					}
					return row.Barrier().Wait(ctx)
				})
				if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok && p.Of(row) {
					return nil
				}
				return err
			})
			require.EqualError(t, err, "mpicx: error propagated from rank 3: world")
			sum := []int{k}
			require.NoError(t, world.TryAll(ctx, func(ctx context.Context) error {
				return row.TryAll(ctx, func(ctx context.Context) error {
					return mpicx.Allreduce(row, sum, sum, mpicx.Sum).Wait(ctx)
				})
			}))
			require.Equal(t, 2*k, sum[0])
		}
		return nil
	})
}
