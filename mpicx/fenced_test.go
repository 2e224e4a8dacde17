package mpicx

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A rank that has been declared dead is told so though its communicators have no other rank, so that its
// operations need no message.
func TestFencedAlone(t *testing.T) {
	if machine.Processes() > 0 {
		t.Skip("processes need their job for other tests")
	}
	errs := make([]error, 2)
	_ = Run(context.Background(), func(ctx context.Context, world *Comm) error {
		alone, err := world.Split(world.Rank(), 0).Get(ctx)
		if err != nil {
			return err
		}
		if err := alone.Barrier().Wait(ctx); err != nil {
			return err
		}
		world.proc.giveUp(transport.ErrFenced)
		errs[world.Rank()] = alone.Barrier().Wait(ctx)
		return nil
	}, WithRanks(2))
	for rank, err := range errs {
		assert.ErrorIs(t, err, ErrFenced, "rank %d", rank)
	}
}

// Nor does an older error, which Shrink would have given again, keep it from a rank that has been declared dead.
func TestFencedShrink(t *testing.T) {
	if machine.Processes() > 0 {
		t.Skip("processes need their job for other tests")
	}
	first, then := make([]error, 2), make([]error, 2)
	_ = Run(context.Background(), func(ctx context.Context, world *Comm) error {
		r := world.Rank()
		if r == 2 {
			world.t.Die()
			return nil
		}
		first[r] = world.Barrier().Wait(ctx)
		world.proc.giveUp(transport.ErrFenced)
		_, then[r] = world.Shrink().Get(ctx)
		return nil
	}, WithRanks(3), hook.Backend[Option](hook.ULFM))
	for r := range first {
		assert.True(t, is[*CommCorruptedError](first[r]), "rank %d: %v", r, first[r])
		assert.NotErrorIs(t, first[r], ErrFenced, "rank %d", r)
		assert.ErrorIs(t, then[r], ErrFenced, "rank %d", r)
	}
}
