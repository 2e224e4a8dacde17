package mpicx_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A rank fails with a wrong call of its own that no Wait has told it of, and who waits for the message
// learns why it does not come.
func TestWrongCallThatNobodyWaitsFor(t *testing.T) {
	if processes != nil {
		t.Skip("looks at the errors of all ranks")
	}
	const reason = "mpicx: Send: rank 99 of world, expected 0 to 1 or ProcNull"
	for _, backend := range []string{"blackchannel", "ulfm"} {
		t.Run(backend, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var peer error
				err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
					if world.Rank() == 0 {
						mpicx.Send(world, []int{1}, 99, 5)
						return nil
					}
					peer = mpicx.Recv(world, []int{0}, 0, 5).Wait(ctx)
					return nil
				}, mpicx.WithRanks(2), hook.Backend[mpicx.Option](backend))
				wrong, ok := errors.AsType[*mpicx.MPIError](err)
				require.True(t, ok, err)
				assert.Equal(t, mpicx.ClassRank, wrong.Class)
				assert.ErrorContains(t, err, "nobody has waited for what ended with "+reason)
				assert.ErrorContains(t, peer, reason)
			})
		})
	}
}

// It does not fail with one that it was told of, or that an error of all ranks has made needless.
func TestWrongCallThatIsExcused(t *testing.T) {
	for name, program := range map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"waited for": func(ctx context.Context, world *mpicx.Comm) error {
			if mpicx.Send(world, []int{1}, 99, 5).Wait(ctx) == nil {
				return errors.New("no error")
			}
			return nil
		},
		"before an error": func(ctx context.Context, world *mpicx.Comm) error {
			mpicx.Send(world, []int{1}, 99, 5)
			_ = world.SignalError(ctx, 1)
			return nil
		},
		"corrupted": func(ctx context.Context, world *mpicx.Comm) error {
			mpicx.Send(world, []int{1}, 99, 5)
			_ = world.Guard(ctx, func(context.Context) error { return errors.New("bad input") })
			return nil
		},
		"to a rank that has returned": func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 0 {
				mpicx.Ssend(world, []int{1}, 1, 5)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBackends(t, 2, func(ctx context.Context, _ string, world *mpicx.Comm) error { return program(ctx, world) })
		})
	}
}

// An Instance has no function that could return the error: Finalize does.
func TestWrongCallBeforeFinalize(t *testing.T) {
	if processes != nil {
		t.Skip("the Instance of this job is that of TestMain")
	}
	i, err := mpicx.Initialize(t.Context(), mpicx.WithRanks(1))
	require.NoError(t, err)
	mpicx.Send(i.World(), []int{1}, 99, 5)
	assert.ErrorContains(t, i.Finalize(t.Context()), "nobody has waited for what ended with mpicx: Send: rank 99")
}
