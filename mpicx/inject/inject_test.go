package inject_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

// Without a backend that sees deaths a program ends, and says why, whatever its ranks wait for.
func TestDieEndsTheOthers(t *testing.T) {
	if mpicx.Backend == "ulfm" {
		t.Skip("others live on")
	}
	waits := map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"barrier": func(ctx context.Context, world *mpicx.Comm) error { return world.Barrier().Wait(ctx) },
		"dup":     func(ctx context.Context, world *mpicx.Comm) error { return world.Dup().Wait(ctx) },
		"signal":  func(ctx context.Context, world *mpicx.Comm) error { return world.SignalError(ctx, 1) },
		"close":   func(ctx context.Context, world *mpicx.Comm) error { return world.Close(ctx) },
		"any source": func(ctx context.Context, world *mpicx.Comm) error {
			return mpicx.Recv(world, []int{0}, mpicx.AnySource, 0).Wait(ctx)
		},
		"duplicate":      onDup,
		"context of try": func(ctx context.Context, world *mpicx.Comm) error { return compute(ctx, world.Try) },
		"of guard":       func(ctx context.Context, world *mpicx.Comm) error { return compute(ctx, world.Guard) },
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			told, err := told(t, func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() != 2 {
					return wait(ctx, world)
				}
				if name == "duplicate" {
					world.Dup().MustWait(ctx)
				}
				inject.Die(world)
				return nil
			})
			if name == "dup" || name == "close" {
				return // these need not hear of it
			}
			for _, rank := range []int{0, 1, 3} {
				var corrupted *mpicx.CommCorruptedError
				require.ErrorAs(t, told[rank], &corrupted, "rank %d", rank)
			}
			require.ErrorContains(t, err, "its process has died; with -tags ulfm the others could continue without it")
		})
	}
}

// A rank that dies in a Guard of a communicator made from the world has died for its members too.
func TestDieInGuard(t *testing.T) {
	if mpicx.Backend == "ulfm" {
		t.Skip("others live on")
	}
	told, _ := told(t, func(ctx context.Context, world *mpicx.Comm) error {
		half, err := world.Split(min(world.Rank(), 1), 0).Get(ctx)
		if err == nil {
			err = half.Barrier().Wait(ctx)
		}
		if err != nil { // it is told already
			return err
		}
		return half.Guard(ctx, func(ctx context.Context) error {
			if world.Rank() == 2 {
				inject.Die(half)
			}
			return half.Barrier().Wait(ctx)
		})
	})
	for _, rank := range []int{1, 3} {
		require.ErrorContains(t, told[rank], "its process has died; with -tags ulfm")
		require.NotContains(t, told[rank].Error(), "Goexit")
	}
}

// told runs a program in which rank 2 of 4 dies. It returns what the ranks and Run return, which
// says that its process has died.
func told(t *testing.T, program func(context.Context, *mpicx.Comm) error) (told [4]error, err error) {
	t.Helper()
	err = mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		told[world.Rank()] = program(ctx, world)
		return told[world.Rank()]
	}, mpicx.WithRanks(4))
	require.ErrorContains(t, err, "rank 2: its process has died")
	require.NotContains(t, err.Error(), "Goexit")
	return told, err
}

func onDup(ctx context.Context, world *mpicx.Comm) error {
	dup, err := world.Dup().Get(ctx)
	if err != nil {
		return err
	}
	return dup.Barrier().Wait(ctx)
}

// compute waits for nothing but the end of its context.
func compute(ctx context.Context, scope func(context.Context, func(context.Context) error) error) error {
	return scope(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
}
