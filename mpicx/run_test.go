package mpicx_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// Run has the error of a rank that ended by runtime.Goexit.
func TestRunTellsOfGoexit(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				runtime.Goexit()
			}
			_ = world.Barrier().Wait(ctx)
			return nil
		}, mpicx.WithRanks(2), backend)
		require.ErrorIs(t, err, mpicx.ErrGoexit)
	})
}
