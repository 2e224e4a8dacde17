package mpicx_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A counted side counts, with those made of it, how many are open.
type counted struct {
	transport.Comm
	open *atomic.Int64
}

func (c *counted) Sub(name transport.Name, members []int, done func(transport.Comm, error)) {
	c.Comm.Sub(name, members, func(side transport.Comm, err error) {
		if err == nil {
			c.open.Add(1)
			side = &counted{side, c.open}
		}
		done(side, err)
	})
}

func (c *counted) Close() error {
	c.open.Add(-1)
	return c.Comm.Close()
}

// kept runs a program on n ranks, and returns how many sides the transport still has for
// it in the end, but for the world's error channel.
func kept(t *testing.T, n int, backend string, fn func(context.Context, *mpicx.Comm) error) int {
	t.Helper()
	var open atomic.Int64
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		return fn(ctx, world)
	}, mpicx.WithRanks(n), hook.Backend(backend).(mpicx.Option),
		hook.Transport(func(c transport.Comm) transport.Comm { return &counted{c, &open} }).(mpicx.Option))
	require.NoError(t, err)
	return int(open.Load()) - n
}

func TestMeasure(t *testing.T) {
	for _, backend := range []string{"blackchannel", "ulfm"} {
		for n := 1; n < 9; n++ {
			fmt.Println(backend, n, kept(t, n, backend, func(ctx context.Context, world *mpicx.Comm) error {
				for range 100 {
					if err := world.Dup().MustGet(ctx).Close(ctx); err != nil {
						return err
					}
				}
				return nil
			}))
		}
	}
}
