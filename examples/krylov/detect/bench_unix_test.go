//go:build unix

package detect

import (
	"context"
	"math"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/distributed"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

// BenchmarkDetector compares CPU time with and without a detector.
func BenchmarkDetector(b *testing.B) {
	const n, iterations = 317, 100
	for name, method := range map[string]krylov.Method{"cg": krylov.CG, "gmres": krylov.GMRES, "bicgstab": krylov.BiCGStab} {
		b.Run(name, func(b *testing.B) {
			var with, without float64
			err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
				var mine []distributed.Block
				if world.Rank() == 0 {
					mine = []distributed.Block{{CSR: laplacian(b, n)}}
				}
				a, err := distributed.New(ctx, world, n*n, mine...)
				if err != nil {
					return err
				}
				sys := krylov.System{Space: distributed.Space{Comm: world}, A: a, B: make([]float64, a.Rows())}
				for i := range sys.B {
					sys.B[i] = 1 + float64((a.First()+i)%7)
				}
				square := make([]float64, 1)
				sys.Space.Sum([]float64{dot(sys.B)}, square).MustWait(ctx)
				x := make([]float64, a.Rows())
				solve := func(s krylov.System, observe func(context.Context, *krylov.State) error) float64 {
					clear(x)
					world.Barrier().MustWait(ctx)
					begin := cpu(b)
					_, err := method(ctx, s, x, krylov.Options{Tol: 1e-14, MaxIter: iterations, Divergence: 1e300, Observe: observe})
					mpicx.Throw(err)
					world.Barrier().MustWait(ctx)
					return cpu(b) - begin
				}
				var times [2]float64
				for range b.N {
					plain := solve(sys, nil)
					d := New(Settings{Tol: 1e-8, First: a.First(), NormA: 8, NormB: math.Sqrt(square[0])})
					watched := d.Watch(sys)
					d.Forget()
					slow := solve(watched, func(ctx context.Context, s *krylov.State) error { return d.Iteration(ctx, s, s.Iter%25 == 0) })
					times[0], times[1] = times[0]+slow, times[1]+plain
				}
				if world.Rank() == 0 {
					with, without = times[0], times[1]
				}
				return nil
			}, mpicx.WithRanks(2))
			require.NoError(b, err)
			b.ReportMetric(100*(with/without-1), "%-more")
		})
	}
}

func cpu(t testing.TB) float64 {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) * 1e-9
}

// laplacian returns the five-point Laplacian on n×n points.
func laplacian(t testing.TB, n int) *sparse.CSR {
	var entries []sparse.Triplet
	for i := range n * n {
		for _, d := range []int{-n, -1, 0, 1, n} {
			j, v := i+d, -1.0
			if d == 0 {
				v = 4
			}
			if j >= 0 && j < n*n && (d*d != 1 || j/n == i/n) {
				entries = append(entries, sparse.Triplet{Row: int32(i), Col: int32(j), Val: v})
			}
		}
	}
	m, err := sparse.NewCSR(n*n, n*n, entries)
	require.NoError(t, err)
	return m
}

func dot(x []float64) (sum float64) {
	for _, v := range x {
		sum += v * v
	}
	return sum
}
