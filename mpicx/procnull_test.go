package mpicx_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Whatever names ProcNull is done at once, moves nothing, and says so.
func TestProcNull(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		nobody := mpicx.Status{Source: mpicx.ProcNull, Tag: mpicx.AnyTag}
		buf := []float64{1, 2}
		for name, f := range map[string]interface {
			Get(context.Context) (mpicx.Status, error)
			Test() (bool, error)
		}{
			"Send":      mpicx.Send(world, buf, mpicx.ProcNull, 3),
			"Ssend":     mpicx.Ssend(world, buf, mpicx.ProcNull, 3),
			"SendValue": mpicx.SendValue(world, "text", mpicx.ProcNull, 3),
			"Recv":      mpicx.Recv(world, buf, mpicx.ProcNull, 3),
			"Probe":     mpicx.Probe[float64](world, mpicx.ProcNull, mpicx.AnyTag),
		} {
			done, err := f.Test()
			require.True(t, done, name)
			require.NoError(t, err, name)
			s, err := f.Get(ctx)
			require.NoError(t, err, name)
			require.Equal(t, nobody, s, name)
		}
		require.Equal(t, []float64{1, 2}, buf)
		slice, err := mpicx.RecvSlice[float64](world, mpicx.ProcNull, 3).Get(ctx)
		require.NoError(t, err)
		require.Empty(t, slice)
		value, err := mpicx.RecvValue[string](world, mpicx.ProcNull, 3).Get(ctx)
		require.NoError(t, err)
		require.Empty(t, value)
		return world.Barrier().Wait(ctx)
	})
}
