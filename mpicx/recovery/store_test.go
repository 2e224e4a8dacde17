package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// marching adds up in steps, with a checkpoint every third, and goes back to the newest.
func marching(steps int, result func(a *recovery.Attempt, x float64)) func(context.Context, *recovery.Attempt) error {
	return func(ctx context.Context, a *recovery.Attempt) error {
		x, sum := []float64{float64(a.Comm.Rank() + 1)}, []float64{0}
		a.Store.Protect("x", &x)
		from := 0
		if a.N > 0 {
			v, err := a.Store.Restore(ctx)
			if err != nil && !errors.Is(err, checkpoint.ErrNone) {
				return err
			}
			from = v
		}
		for step := from + 1; step <= steps; step++ {
			mpicx.Allreduce(a.Comm, x, sum, mpicx.Sum).MustWait(ctx)
			x[0] += sum[0]
			if step%3 == 0 {
				a.Store.Save(ctx, step) // its error comes from what follows
			}
		}
		result(a, x[0])
		return nil
	}
}

// whole returns the results of marching at n ranks.
func whole(n, steps int) []float64 {
	x := make([]float64, n)
	for r := range x {
		x[r] = float64(r + 1)
	}
	for range steps {
		sum := 0.0
		for _, v := range x {
			sum += v
		}
		for r := range x {
			x[r] += sum
		}
	}
	return x
}

// A rank dies at each of its operations, and a spare continues with its data.
func TestStoreAndSpares(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const n, steps = 3, 7
	for victim := range n {
		for at := 1; ; at++ {
			var rs records
			results := make([]float64, n)
			killed := mpicxtest.RunFaults(t, n, fmt.Sprintf("kill %d at operation %d", victim, at), rs.run(marching(steps,
				func(a *recovery.Attempt, x float64) { results[a.Comm.Rank()] = x },
			), recovery.Replace(), recovery.Checkpoint()), mpicx.WithSpares(1))
			end := rs.agree(t)
			require.NoError(t, end.err, "victim %d at %d", victim, at)
			require.Equal(t, whole(n, steps), results, "victim %d at %d", victim, at)
			if len(killed) == 0 {
				require.Greater(t, at, 50)
				break
			}
		}
	}
}

// A store that can't be opened is given up on, too.
func TestStoreWrong(t *testing.T) {
	const n = 2
	mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		err := recovery.Run(ctx, world, func(context.Context, *recovery.Attempt) error { return nil },
			recovery.Checkpoint(checkpoint.RS(0, 7)), recovery.MaxAttempts(3))
		require.ErrorContains(t, err, "given up after 3 attempts")
		require.ErrorContains(t, err, "RS(0, 7)")
		return nil
	})
}

// Processes that are killed: spares, or fresh ranks, continue with what the dead had kept.
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
				return recovery.Run(ctx, world, marching(steps,
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
