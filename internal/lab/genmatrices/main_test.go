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
	dir := t.TempDir()
	require.NoError(t, write(dir))
	want, err := os.ReadDir(dir)
	require.NoError(t, err)
	have, err := os.ReadDir(testdata)
	require.NoError(t, err)
	require.Len(t, have, len(want), "a file that nothing generates")
	size := int64(0)
	for i, f := range want {
		require.Equal(t, f.Name(), have[i].Name())
		info, err := have[i].Info()
		require.NoError(t, err)
		size += info.Size()
		// assert.Equal would print megabytes.
		assert.True(t, bytes.Equal(plain(t, filepath.Join(dir, f.Name())), plain(t, filepath.Join(testdata, f.Name()))),
			"%s differs: go -C internal/lab run ./genmatrices", f.Name())
	}
	assert.Less(t, size, int64(1_500_000))
	assert.Error(t, write(filepath.Join(dir, "missing")))
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
