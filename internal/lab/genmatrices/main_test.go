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
