package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

// stopping is a logger that stops when rank 0 learns of a death.
type stopping struct {
	slog.Handler
	reached, release chan struct{}
}

func (s *stopping) Enabled(context.Context, slog.Level) bool { return true }

func (s *stopping) Handle(_ context.Context, r slog.Record) error {
	stop := r.Message == "died"
	r.Attrs(func(a slog.Attr) bool {
		stop = stop && (a.Key != "rank" || a.Value.Int64() == 0)
		return true
	})
	if stop {
		close(s.reached)
		<-s.release
	}
	return nil
}

// No lock is held while a death is logged: meanwhile other goroutines of the rank acknowledge
// it, and begin to receive (F1).
func TestDeathIsLoggedWithoutLocks(t *testing.T) {
	if processes != nil {
		t.Skip("another process dies: nothing of this test is in it")
	}
	log := &stopping{slog.DiscardHandler, make(chan struct{}), make(chan struct{})}
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		if world.Rank() == 1 {
			_ = mpicx.Recv(world, []int{0}, 0, 0).Wait(ctx)
			inject.Die(world)
		}
		_ = mpicx.Send(world, []int{0}, 1, 0).Wait(ctx)
		before := mpicx.Recv(world, []int{0}, mpicx.AnySource, 1)
		<-log.reached
		if err := before.Wait(ctx); !errors.Is(err, mpicx.ErrProcFailedPending) {
			return fmt.Errorf("a receive from anybody returns %v", err)
		}
		during := mpicx.Recv(world, []int{0}, mpicx.AnySource, 2)
		if err := during.Wait(ctx); !errors.Is(err, mpicx.ErrProcFailedPending) {
			return fmt.Errorf("a receive from anybody that begins then returns %v", err)
		}
		if n := world.AckFailed(1); n != 1 {
			return fmt.Errorf("%d deaths are acknowledged", n)
		}
		close(log.release)
		for tag, f := range map[int]interface{ Wait(context.Context) error }{1: before, 2: during} {
			if err := errors.Join(mpicx.Send(world, []int{1}, 0, tag).Wait(ctx), f.Wait(ctx)); err != nil {
				return err
			}
		}
		return nil
	}, mpicx.WithRanks(2), mpicx.WithLogger(slog.New(log)), hook.Backend[mpicx.Option]("ulfm"))
	require.NoError(t, err)
}
