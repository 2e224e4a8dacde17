package mpicx

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A rank that has been declared dead is told so though its communicators have no other rank, so that its
// operations need no message.
func TestFencedAlone(t *testing.T) {
	if launcher.Launched() {
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
