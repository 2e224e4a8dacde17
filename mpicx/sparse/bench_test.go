package sparse

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkRead reads 1e6 entries in random order with 17 digits each, some 34 MB.
func BenchmarkRead(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	const n, nnz = 100_000, 1_000_000
	ts := make([]Triplet, nnz)
	for k := range ts {
		ts[k] = Triplet{rng.Int32N(n), rng.Int32N(n), rng.NormFloat64()}
	}
	m, err := NewCSR(n, n, ts)
	require.NoError(b, err)
	var text bytes.Buffer
	require.NoError(b, Write(&text, m, ""))
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(bytes.NewReader(text.Bytes()), "bench"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMulVec(b *testing.B) {
	m := readTestdata(b, "poisson2d-128.mtx.gz")
	x, y := make([]float64, m.Cols), make([]float64, m.Rows)
	b.SetBytes(int64(12 * m.NNZ()))
	for b.Loop() {
		m.MulVec(y, x)
	}
}

func BenchmarkILU0Solve(b *testing.B) {
	m := readTestdata(b, "poisson2d-128.mtx.gz")
	f, err := ILU0(m)
	require.NoError(b, err)
	z := make([]float64, m.Rows)
	for b.Loop() {
		f.Solve(z, z)
	}
}
