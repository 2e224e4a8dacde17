//go:build unix

package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A signal asks for a stop, at goroutine ranks and at processes.
func TestStopBySignal(t *testing.T) {
	oneProcess(t)
	asBoth := func(run func(fn func(context.Context, *mpicx.Comm) error, opts ...mpicx.Option)) {
		run(func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				mpicx.Throw(syscall.Kill(syscall.Getpid(), syscall.SIGUSR2))
			}
			_, err := stepped(ctx, world, func() error {
				runtime.Gosched()
				return nil
			})
			stop, _ := errors.AsType[*mpicx.StopError](err)
			if stop == nil || stop.Signal != syscall.SIGUSR2 {
				return fmt.Errorf("got %w, expected a stop by a signal", err)
			}
			return nil
		}, mpicx.WithStop(syscall.SIGUSR2))
	}
	asBoth(func(fn func(context.Context, *mpicx.Comm) error, opts ...mpicx.Option) {
		require.NoError(t, mpicx.Run(t.Context(), fn, append(opts, mpicx.WithRanks(3))...))
	})
	asBoth(func(fn func(context.Context, *mpicx.Comm) error, opts ...mpicx.Option) {
		mpicxtest.RunProcesses(t, 3, fn, opts...)
	})
}
