package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

const testdata = "../../../testdata/matrices"

func TestTestdataIsWhatIsGenerated(t *testing.T) {
	want, err := generate()
	require.NoError(t, err)
	have, err := os.ReadDir(testdata)
	require.NoError(t, err)
	size := int64(0)
	for _, f := range have {
		assert.Contains(t, want, f.Name(), "a file that nothing generates")
		info, err := f.Info()
		require.NoError(t, err)
		size += info.Size()
	}
	assert.Less(t, size, int64(1_500_000))
	for name, text := range want {
		got := plain(t, filepath.Join(testdata, name))
		// assert.Equal would print megabytes.
		assert.True(t, bytes.Equal(text, got), "%s differs: go -C internal/lab run ./genmatrices", name)
	}
}

// plain returns the contents of a file, decompressed, because compress/gzip may compress better in
// a future version of Go.
func plain(t *testing.T, name string) []byte {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	r := io.Reader(f)
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(f)
		require.NoError(t, err)
		require.Zero(t, z.ModTime, "the file would differ on every run")
		r = z
	}
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return text
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, write(dir))
	want, err := generate()
	require.NoError(t, err)
	for name, text := range want {
		assert.True(t, bytes.Equal(text, plain(t, filepath.Join(dir, name))), name)
	}
	assert.Error(t, write(filepath.Join(dir, "missing")))
}

func TestStencils(t *testing.T) {
	tests := []struct {
		name   string
		matrix func(int) (*sparse.CSR, error)
		rows   int
		row0   []float64
	}{
		{"poisson2D", poisson2D, 9, []float64{4, -1, 0, -1, 0, 0, 0, 0, 0}},
		{"anisotropic", anisotropic, 9, []float64{2.02, -0.01, 0, -1, 0, 0, 0, 0, 0}},
		{"convection", convection, 9, []float64{4.75, -1, 0, -1, 0, 0, 0, 0, 0}},
		// A(0,0) at 0: B(0,0) at 1, B(2,0) at 5, B(0,2) at 13.
		{"graphene", graphene, 18, []float64{3.5, -1, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := tt.matrix(3)
			require.NoError(t, err)
			require.Equal(t, tt.rows, m.Rows)
			for j, want := range tt.row0 {
				assert.Equal(t, want, m.At(0, j), "column %d", j)
			}
		})
	}
	m, err := convection(3)
	require.NoError(t, err)
	assert.Equal(t, []float64{-1.25, -1.5, 4.75, -1, -1}, []float64{m.At(4, 1), m.At(4, 3), m.At(4, 4), m.At(4, 5), m.At(4, 7)})
	m, err = poisson3D(3)
	require.NoError(t, err)
	cols, vals := m.Row(13) // the middle row
	assert.Equal(t, []int32{4, 10, 12, 13, 14, 16, 22}, cols)
	assert.Equal(t, []float64{-1, -1, -1, 6, -1, -1, -1}, vals)
}

// Graphene has three bonds for each atom, symmetric, from sublattice A to B. So constant vectors
// are eigenvectors of H + 3.5t with eigenvalue 0.5t, and vectors that alternate between A and B
// with 6.5t: the ends of the spectrum.
func TestGraphene(t *testing.T) {
	m, err := graphene(5)
	require.NoError(t, err)
	require.Equal(t, 4*m.Rows, m.NNZ())
	x, y := make([]float64, m.Rows), make([]float64, m.Rows)
	for _, tt := range []struct{ sign, eigenvalue float64 }{{1, 0.5}, {-1, 6.5}} {
		for i := range x {
			x[i] = 1
			if i%2 == 1 {
				x[i] = tt.sign
			}
		}
		m.MulVec(y, x)
		for i := range y {
			assert.Equal(t, tt.eigenvalue*x[i], y[i])
		}
	}
	for i := range m.Rows {
		cols, vals := m.Row(i)
		for k, j := range cols {
			assert.Equal(t, vals[k], m.At(int(j), i))
			assert.True(t, int(j) == i || (int(j)-i)%2 != 0, "bond from %d to %d", i, j)
		}
	}
}
