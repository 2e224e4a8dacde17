package recovery_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// Processes that are killed: spares, or fresh ranks, go on with what the dead had kept.
func TestProcesses(t *testing.T) {
	t.Run("spares", func(t *testing.T) { testProcesses(t, 2, mpicx.WithSpares(2)) })
	t.Run("fresh", func(t *testing.T) { testProcesses(t, 0, mpicx.WithRespawn()) })
}

func testProcesses(t *testing.T, spares int, opt mpicx.Option) {
	const n, steps = 3, 9
	for _, plan := range []string{
		"",
		"kill 1 at operation 70",
		"kill 0 at operation 40; kill 3 at operation 30", // the first rescue, too
		"kill 2 at operation 60; exit 1 with status 3 in replace message 1",
	} {
		t.Run(plan, func(t *testing.T) {
			if plan != "" {
				mpicxtest.NeedsULFM(t)
			}
			run := func(ctx context.Context, world *mpicx.Comm) error {
				return recovery.Run(ctx, world, marching(steps, true,
					func(context.Context, *recovery.Attempt, int) error { return nil },
					func(a *recovery.Attempt, x float64) { mpicxtest.Hand([]float64{float64(a.Comm.Rank()), x}) },
				), recovery.Replace(), recovery.Checkpoint(checkpoint.Partner(2)))
			}
			all := mpicxtest.RunProcessFaults(t, n+spares, plan, run, opt)
			got, killed := make([]float64, n), 0
			for _, p := range all {
				if p.Killed {
					killed++
				}
				for _, v := range mpicxtest.ValuesOf[[]float64](t, p) {
					got[int(v[0])] = v[1]
				}
			}
			require.Equal(t, strings.Count(plan, " at ")+strings.Count(plan, " in "), killed)
			require.Equal(t, whole(n, steps), got)
		})
	}
}
