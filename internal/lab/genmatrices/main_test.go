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
