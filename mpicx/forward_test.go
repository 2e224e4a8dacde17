package mpicx_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// P8: while a rank computes and has not come to a Dup, or to a Dup of that, an
// error of what the others have made ends the contexts of their Try calls. The
// late rank, whichever it is, comes only once they all have ended; then it has the
// verdict as well. (The ulfm backend's Dup waits for all ranks.)
func TestP8WhileARankHasNotMadeItsSide(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	const n = 8
	for _, dups := range []int{1, 3} {
		for late := range n {
			for _, signaller := range []int{(late + 1) % n, (late + 3) % n, (late + 6) % n} {
				t.Run(fmt.Sprintf("%d dups, rank %d late, %d signals", dups, late, signaller), func(t *testing.T) {
					var told sync.WaitGroup // contexts that have ended
					told.Add(n - 2)
					err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
						if world.Rank() == late {
							told.Wait() // it computes
						}
						comm := world
						for range dups {
							dup, err := comm.Dup().Get(ctx)
							if err != nil {
								return err
							}
							comm = dup
						}
						err := comm.Try(ctx, func(ctx context.Context) error {
							switch world.Rank() {
							case late:
								return comm.Barrier().Wait(ctx)
							case signaller:
								return comm.SignalError(ctx, 7)
							}
							<-ctx.Done() // it computes
							told.Done()
							return ctx.Err()
						})
						if err := propagated(err, 7); err != nil {
							return err
						}
						return comm.Barrier().Wait(ctx)
					}, mpicx.WithRanks(n), hook.Backend[mpicx.Option]("blackchannel"))
					require.NoError(t, err)
				})
			}
		}
	}
}
