package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// P8: a rank that does nothing in Guard but wait for its context learns that a peer has
// unwound, whether it has entered the Guard or not.
func TestACorruptionEndsTheContextOfGuard(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for n := 2; n <= 5; n++ {
			for who := range n {
				for range 10 {
					waitInGuard(t, n, who, backend, func(*mpicx.Comm) error { return nil })
				}
			}
		}
	})
}

// P8: so does one that has heard before of a signal, which ends no Guard.
func TestACorruptionAfterASignalEndsTheContextOfGuard(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for n := 3; n <= 5; n++ {
			for signals := range n {
				for who := range n {
					if who == signals {
						continue
					}
					waitInGuard(t, n, who, backend, func(world *mpicx.Comm) error {
						switch world.Rank() {
						case signals:
							return world.SignalError(context.Background(), 5)
						case who:
							time.Sleep(time.Second) // of the bubble: all have heard of the signal
						}
						return nil
					})
				}
			}
		}
	})
}

// waitInGuard has n ranks wait for the end of a Guard's context, by which who unwinds,
// each once first has returned nil.
func waitInGuard(t *testing.T, n, who int, backend mpicx.Option, first func(*mpicx.Comm) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			err := world.Guard(ctx, func(ctx context.Context) error {
				switch err := first(world); {
				case err != nil:
					return err
				case world.Rank() == who:
					return errors.New("it unwinds")
				}
				<-ctx.Done()
				return ctx.Err()
			})
			if world.Rank() != who && !corrupted(err) {
				return fmt.Errorf("rank %d: got %v (%T)", world.Rank(), err, err)
			}
			return nil
		}, mpicx.WithRanks(n), backend)
		require.NoError(t, err)
	})
}
