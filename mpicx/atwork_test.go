package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// P4: a rank is told of an error only when its buffers are free. A reduction's function may be at
// work then, on the goroutine of a peer whose message has ended the last receive, while all ranks
// join the round.
func TestErrorsWaitForReductions(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for name, n := range map[string]int{"short": 1, "long": 4096} {
			t.Run(name, func(t *testing.T) { errorsWaitForReductions(t, backend, n) })
		}
	})
}

func errorsWaitForReductions(t *testing.T, backend mpicx.Option, n int) {
	const code, mine = 7, -1
	synctest.Test(t, func(t *testing.T) {
		posted, atWork, proceed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		block := func(a, b int64) int64 {
			select {
			case <-atWork:
			default:
				close(atWork)
				<-proceed
			}
			return a + b
		}
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			send, recv := make([]int64, n), make([]int64, n)
			told := make(chan error, 1)
			if world.Rank() == 1 {
				<-posted
				go func() { told <- mpicx.Recv(world, make([]int64, 1), 0, 0).Wait(ctx) }()
				_ = mpicx.ReduceFunc(world, send, recv, block, 0)
				return propagated(<-told, code)
			}
			reduced := mpicx.ReduceFunc(world, send, recv, block, 0)
			close(posted)
			<-atWork
			go func() { told <- world.SignalError(ctx, code) }()
			settle()
			select {
			case err := <-told:
				return fmt.Errorf("told while the function uses the buffer: %w", err)
			default:
			}
			close(proceed)
			mpicx.Throw(propagated(<-told, code))
			recv[0] = mine
			settle()
			if recv[0] != mine {
				return errors.New("the buffer was written afterwards")
			}
			return reduced.Wait(ctx)
		}, mpicx.WithRanks(2), backend))
	})
}

// A revoke is told when the function has returned, too.
func TestRevokeWaitsForReductions(t *testing.T) {
	oneProcess(t)
	synctest.Test(t, func(t *testing.T) {
		posted, atWork, proceed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		block := func(a, b int64) int64 {
			close(atWork)
			<-proceed
			return a + b
		}
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			c := dup(ctx, world)
			c.SetErrhandler(mpicx.ErrorsReturn)
			recv := make([]int64, 1)
			told := make(chan error, 1)
			if world.Rank() == 1 {
				<-posted
				go func() { <-atWork; told <- c.Revoke(ctx) }()
				_ = mpicx.ReduceFunc(c, []int64{1}, recv, block, 0)
				return <-told
			}
			mpicx.ReduceFunc(c, []int64{1}, recv, block, 0)
			close(posted)
			go func() { told <- mpicx.Recv(c, make([]int64, 1), 1, 0).Wait(ctx) }()
			settle()
			select {
			case err := <-told:
				return fmt.Errorf("told while the function uses the buffer: %w", err)
			default:
			}
			close(proceed)
			return expect(<-told, mpicx.ErrRevoked)
		}, mpicx.WithRanks(2), hook.Backend[mpicx.Option]("ulfm")))
	})
}
