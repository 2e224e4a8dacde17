package distributed_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/distributed"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

var matrices = []string{"convection-64.mtx.gz", "graphene-64.mtx.gz", "integer-4.mtx", "petersen.mtx", "skew-6.mtx"}

func file(name string) string { return filepath.Join("../../testdata/matrices", name) }

// read reads a matrix of testdata, or throws.
func read(ctx context.Context, world *mpicx.Comm, name string) *distributed.Matrix {
	a, err := distributed.ReadFile(ctx, world, file(name))
	mpicx.Throw(err)
	return a
}

// product returns a vector and its product with the matrix.
func product(m *sparse.CSR) (x, y []float64) {
	x, y = make([]float64, m.Cols), make([]float64, m.Rows)
	for i := range x {
		x[i] = math.Sin(float64(i))
	}
	m.MulVec(y, x)
	return x, y
}

// requireIs checks that a is the matrix m: by rows, and by products.
func requireIs(t testing.TB, ctx context.Context, m *sparse.CSR, a *distributed.Matrix) {
	lo, hi := a.First(), a.First()+a.Rows()
	assert.Equal(t, m.Rows, a.Size())
	total := 0
	for _, n := range a.Counts() {
		total += n
	}
	assert.Equal(t, m.Rows, total)
	b := a.Block()
	assert.Equal(t, lo, b.First)
	assert.Equal(t, m.Slice(lo, hi), b.CSR)
	x, want := product(m)
	y := make([]float64, hi-lo)
	for range 3 {
		clear(y)
		a.Apply(ctx, y, x[lo:hi])
		assert.InDeltaSlice(t, want[lo:hi], y, 1e-13)
	}
}

// What is read is divided as the entries are, and multiplies as the whole does.
func TestReadFile(t *testing.T) {
	for _, name := range matrices {
		m, err := sparse.ReadFile(file(name))
		require.NoError(t, err)
		for _, ranks := range []int{1, 2, 3, 8} {
			t.Run(fmt.Sprintf("%s/%d", name, ranks), func(t *testing.T) {
				mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
					a := read(ctx, world, name)
					assert.Equal(t, sparse.Partition(m.RowPtr, ranks), a.Offsets)
					requireIs(t, ctx, m, a)
					symmetric, err := a.Symmetric(ctx)
					assert.Equal(t, name == "graphene-64.mtx.gz" || name == "petersen.mtx", symmetric)
					return err
				})
			})
		}
	}
}

// Any rank may have any rows before, in any number of blocks, and parts of a vector.
func TestNew(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		ranks, n := 1+random.IntN(6), random.IntN(40)
		var entries []sparse.Triplet
		for range random.IntN(4*n + 1) {
			entries = append(entries, sparse.Triplet{Row: random.Int32N(int32(n)), Col: random.Int32N(int32(n)), Val: float64(random.IntN(9) - 4)})
		}
		m, err := sparse.NewCSR(n, n, entries)
		require.NoError(t, err)
		blocks, parts := make([][]distributed.Block, ranks), make([][]distributed.Part, ranks)
		values, missing := make([]float64, n), make([]bool, n)
		for lo := 0; lo < n; {
			hi := lo + 1 + random.IntN(n-lo)
			r := random.IntN(ranks)
			absent := random.IntN(2) == 0
			for i := lo; i < hi; i++ {
				if missing[i] = absent; !absent {
					values[i] = float64(i)
				}
			}
			if !absent {
				parts[r] = append(parts[r], distributed.Part{First: lo, Values: values[lo:hi]})
			}
			blocks[r] = append(blocks[r], distributed.Block{First: lo, CSR: m.Slice(lo, hi)})
			lo = hi
		}
		mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
			a, err := distributed.New(ctx, world, n, blocks[world.Rank()]...)
			mpicx.Throw(err)
			assert.Equal(t, sparse.Partition(m.RowPtr, ranks), a.Offsets)
			requireIs(t, ctx, m, a)
			x, absent, err := a.Vector(ctx, parts[world.Rank()]...)
			lo, hi := a.First(), a.First()+a.Rows()
			assert.Equal(t, values[lo:hi], x)
			assert.Equal(t, missing[lo:hi], absent)
			return err
		})
	}
}

// fail checks that ranks get an error of what they do together.
func fail(t *testing.T, ranks int, want string, do func(context.Context, *mpicx.Comm) error) {
	t.Helper()
	mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.TryAll(ctx, func(ctx context.Context) error { return do(ctx, world) })
		assert.ErrorContains(t, err, want)
		return nil
	})
}

// A rank whose part is not inside the vector gets an error, and no other rank panics.
func TestVectorOutside(t *testing.T) {
	for _, first := range []int{-1, 3, 1 << 30} {
		fail(t, 2, "from rank 1: distributed: a part of 2 elements from ", func(ctx context.Context, world *mpicx.Comm) error {
			a, err := distributed.New(ctx, world, 4)
			mpicx.Throw(err)
			_, _, err = a.Vector(ctx, distributed.Part{First: world.Rank() * first, Values: []float64{1, 2}})
			return err
		})
	}
}

// More than fits into one packet, all of it on the wrong rank.
func TestNewManyRounds(t *testing.T) {
	const n = 1 << 17
	entries := make([]sparse.Triplet, 0, n)
	for i := range int32(n) {
		entries = append(entries, sparse.Triplet{Row: i, Col: n - 1 - i, Val: float64(i)})
	}
	m, err := sparse.NewCSR(n, n, entries)
	require.NoError(t, err)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		mine := distributed.Block{First: n / 2 * (1 - world.Rank()), CSR: m.Slice(n/2*(1-world.Rank()), n/2*(2-world.Rank()))}
		a, err := distributed.New(ctx, world, n, mine)
		mpicx.Throw(err)
		requireIs(t, ctx, m, a)
		return nil
	})
}

// Every rank gets the error of the file, which rank 0 alone reads.
func TestReadErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "x.mtx: found an empty file"},
		{"%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n", "x.mtx: 2 x 3, expected a square matrix"},
		{"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n", "x.mtx:3: found the end of the file after 1 entries"},
		{"%%MatrixMarket matrix coordinate real general\n3 3 2\n3 3 1e308\n3 3 1e308\n", "entries of row 3 and column 3 that add up to +Inf"},
	} {
		fail(t, 3, test.want, func(ctx context.Context, world *mpicx.Comm) error {
			_, err := distributed.Read(ctx, world, strings.NewReader(test.text), "x.mtx")
			return err
		})
	}
	outside := distributed.Block{First: 2, CSR: &sparse.CSR{Rows: 2, Cols: 3, RowPtr: []int{0, 0, 0}}}
	fail(t, 2, "a block of 2 rows from 2 on and 3 columns, expected it inside 3 x 3", func(ctx context.Context, world *mpicx.Comm) error {
		_, err := distributed.New(ctx, world, 3, outside)
		return err
	})
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		require.Panics(t, func() { _, _ = distributed.Read(ctx, world, nil, "x.mtx") }, "a panic is no error")
		return nil
	})
}

// A product that a peer's error interrupts throws it, and the next one is right.
func TestApplyInterrupted(t *testing.T) {
	m, err := sparse.ReadFile(file("convection-64.mtx.gz"))
	require.NoError(t, err)
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		var a *distributed.Matrix
		mpicx.Throw(world.TryAll(ctx, func(ctx context.Context) error {
			a = read(ctx, world, "convection-64.mtx.gz")
			return nil
		}))
		y := make([]float64, a.Rows())
		for round := range 10 {
			err := world.Try(ctx, func(ctx context.Context) error {
				if world.Rank() == round%4 {
					return fmt.Errorf("round %d", round)
				}
				for {
					a.Apply(ctx, y, y)
				}
			})
			assert.ErrorContains(t, err, fmt.Sprintf("round %d", round))
			// Inside TryAll, or the next round's error might come to a rank here.
			mpicx.Throw(world.TryAll(ctx, func(ctx context.Context) error {
				requireIs(t, ctx, m, a)
				return nil
			}))
		}
		return nil
	})
}

func TestSolve(t *testing.T) {
	for name, method := range map[string]krylov.Method{"gmres": krylov.GMRES, "bicgstab": krylov.BiCGStab} {
		for precond, make_ := range map[string]func(*distributed.Matrix) (krylov.Operator, error){
			"jacobi": distributed.Jacobi, "blockjacobi": distributed.BlockJacobi,
		} {
			t.Run(name+"/"+precond, func(t *testing.T) {
				mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
					a := read(ctx, world, "convection-64.mtx.gz")
					p, err := make_(a)
					mpicx.Throw(err)
					x, b := make([]float64, a.Rows()), slices.Repeat([]float64{1}, a.Rows())
					sys := krylov.System{Space: distributed.Space{Comm: world}, A: a, M: p, B: b}
					res, err := method(ctx, sys, x, krylov.Options{Tol: 1e-9, MaxIter: 500})
					assert.True(t, res.Converged)
					assert.LessOrEqual(t, sys.TrueResidual(ctx, x), 1.1e-9)
					return err
				})
			})
		}
	}
}

// With exact sums and rows in the order of columns, a method computes the same bits on any number of
// ranks.
func TestSameBits(t *testing.T) {
	for _, test := range []struct {
		name, matrix string
		method       krylov.Method
	}{{"cg", "graphene-64.mtx.gz", krylov.CG}, {"gmres", "convection-64.mtx.gz", krylov.GMRES}, {"bicgstab", "convection-64.mtx.gz", krylov.BiCGStab}} {
		t.Run(test.name, func(t *testing.T) {
			var want, whole []float64 // the residuals on 1 rank, and x
			for ranks := 1; ranks <= 7; ranks++ {
				mpicxtest.Run(t, ranks, func(ctx context.Context, world *mpicx.Comm) error {
					a := read(ctx, world, test.matrix)
					p, err := distributed.Jacobi(a)
					mpicx.Throw(err)
					x, b := make([]float64, a.Rows()), slices.Repeat([]float64{1}, a.Rows())
					sys := krylov.System{Space: distributed.ExactSpace{Comm: world}, A: a.Ordered(), M: p, B: b}
					var residuals []float64
					_, err = test.method(ctx, sys, x, krylov.Options{Tol: 1e-9, MaxIter: 20, Restart: 15, Observe: func(_ context.Context, s *krylov.State) error {
						residuals = append(residuals, s.Residual)
						return nil
					}})
					residuals = append(residuals, sys.TrueResidual(ctx, x))
					if ranks == 1 {
						want, whole = residuals, x
					}
					assert.Equal(t, want, residuals, "%d ranks", ranks)
					assert.Equal(t, whole[a.First():a.First()+a.Rows()], x, "%d ranks", ranks)
					return err
				})
			}
		})
	}
}

func TestJacobiZeroDiagonal(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		a := read(ctx, world, "petersen.mtx")
		_, err := distributed.Jacobi(a)
		assert.EqualError(t, err, fmt.Sprintf("jacobi: the diagonal is 0 in row %d, expected none there", a.First()))
		_, err = distributed.BlockJacobi(a)
		var pivot *sparse.PivotError
		assert.ErrorAs(t, err, &pivot)
		return nil
	})
}
