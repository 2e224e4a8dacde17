package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// P2: a rank that has left TryAll, and was told nothing, raises with the others.
func TestTryAllTellsOrLeavesOut(t *testing.T) {
	oneProcess(t)
	rounds := 4000
	if testing.Short() || buildtags.Race {
		rounds = 500
	}
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			for i := range rounds {
				err := world.TryAll(ctx, func(context.Context) error { return nil })
				if err != nil {
					return fmt.Errorf("round %d: TryAll: %w", i, err)
				}
				err = world.Try(ctx, func(context.Context) error { return errors.New("NaN") })
				if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || len(p.Failures) != world.Size() {
					return fmt.Errorf("round %d: Try: %w", i, err)
				}
			}
			return nil
		}, mpicx.WithRanks(2), backend)
		require.NoError(t, err)
	})
}

// D2: a rank whose TryAll waits for the verdict of a sibling says no before. Another that
// has said yes joins no round, so that each would wait for the other.
func TestTryAllInATryOnASibling(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		synctest.Test(t, func(t *testing.T) {
			lost := errors.New("lost")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of the bubble's time
			defer cancel()
			err := mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
				sibling, part := dup(ctx, world), world.Split(world.Rank()%2, 0).MustGet(ctx)
				err := sibling.Try(ctx, func(ctx context.Context) error {
					if world.Rank() == 1 {
						time.Sleep(time.Millisecond) // the others are in their TryAll
						return lost
					}
					return part.TryAll(ctx, func(ctx context.Context) error {
						if world.Rank() == 0 {
							<-ctx.Done()
							time.Sleep(time.Millisecond) // rank 2 waits for this one
						}
						return nil
					})
				})
				if p, ok := errors.AsType[*mpicx.PropagatedError](err); !ok || len(p.Failures) != 1 || p.Failures[0].Message != lost.Error() {
					return fmt.Errorf("got %w", err)
				}
				return nil
			}, mpicx.WithRanks(3), backend)
			require.NoError(t, err)
		})
	})
}

// A rank calls a Barrier that the others forget. They wait in TryAll, and are told so, by whom the
// messages reach first; or the error that this rank has in the end.
func TestTryAllOfABarrierTooMany(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.TryAll(ctx, func(ctx context.Context) error {
			if world.Rank() > 0 {
				return nil
			}
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := world.Barrier().Wait(short); err != nil {
				return errors.New("nobody comes")
			}
			return errors.New("the Barrier of one rank has ended")
		})
		require.Regexp(t, `rank 0: nobody comes|Barrier at rank 0, TryAll at rank \d`, fmt.Sprint(err))
		return nil
	})
}
