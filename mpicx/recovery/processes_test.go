package recovery_test

import (
	"context"
	"errors"
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

// Two levels on processes. An error in a pair is handled there. The death of a process is handled by the outer
// level, which has a fresh process started. It continues with what the dead one had kept in the others' memory.
func TestLevelsWithFreshProcesses(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const n, steps = 4, 8
	type end struct {
		Rank, Inner int // Inner: repeated attempts of the rank's pair
		From        []int
		X           float64
	}
	for name, scheme := range map[string]checkpoint.Option{"partner": checkpoint.Partner(1), "RS": checkpoint.RS(2, 2)} {
		t.Run(name, func(t *testing.T) {
			all := mpicxtest.RunProcessFaults(t, n, "must kill 3 at operation 150; must kill 4 at operation 90", func(ctx context.Context, world *mpicx.Comm) error {
				e := end{Rank: world.Rank()}
				err := recovery.Run(ctx, world, func(ctx context.Context, o *recovery.Attempt) error {
					pair, err := o.Comm.Split(o.Comm.Rank()/2, 0).Get(ctx)
					if err != nil {
						return err
					}
					x := []float64{0}
					o.Store.Protect("x", &x)
					from, err := o.Store.Restore(ctx)
					if err != nil && !errors.Is(err, checkpoint.ErrNone) {
						return err
					}
					e.From = append(e.From, from)
					for step := from; step < steps; step++ {
						sum := []float64{0}
						if err := recovery.Run(ctx, pair, func(ctx context.Context, i *recovery.Attempt) error {
							e.Inner += min(i.N, 1)
							if step == 0 && i.N == 0 && o.Comm.Rank() == 0 {
								return errors.New("inner")
							}
							return mpicx.Allreduce(i.Comm, []float64{float64(step + i.Comm.Rank())}, sum, mpicx.Sum).Wait(ctx)
						}); err != nil {
							return err
						}
						x[0] += sum[0]
						if err := o.Store.Save(ctx, step+1).Wait(ctx); err != nil {
							return err
						}
					}
					e.X = x[0]
					return nil
				}, recovery.Replace(), recovery.Checkpoint(scheme))
				if err == nil {
					mpicxtest.Hand(e)
				}
				return err
			}, mpicx.WithRespawn())
			require.Len(t, all, n+2)
			var got []end
			for _, p := range all {
				got = append(got, mpicxtest.ValuesOf[end](t, p)...)
			}
			require.Len(t, got, n)
			for _, e := range got {
				require.Equal(t, float64(steps*steps), e.X) // the sum of 2*step + 1
				if e.Rank < 2 {
					require.Equal(t, 1, e.Inner)
				} else {
					require.Zero(t, e.Inner)
				}
				require.Positive(t, e.From[len(e.From)-1])
			}
		})
	}
}
