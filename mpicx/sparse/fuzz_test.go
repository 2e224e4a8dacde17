package sparse

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzRead reads arbitrary text. Read must not panic, nor allocate much more than the length of
// the text. It must return a valid matrix, which is the same after it was written and read.
func FuzzRead(f *testing.F) {
	small, err := filepath.Glob(filepath.Join(testdata, "*.mtx"))
	require.NoError(f, err)
	for _, name := range small {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(text)
	}
	const banner = "%%MatrixMarket matrix "
	for _, text := range []string{
		"", "\n", "%", "%%MatrixMarket", banner,
		banner + "coordinate real general\n1000000000000000 1000000000000000 3\n1 1 1\n2 2 1\n3 3 1\n",
		banner + "coordinate real general\n3 3 1000000000000000000\n1 1 1\n",
		banner + "coordinate real general\n2147483647 1 1\n2147483647 1 1\n",
		banner + "coordinate real general\n4194305 4194305 1\n4194305 4194305 1\n",
		banner + "coordinate real general\n-1 -1 -1\n",
		banner + "coordinate pattern symmetric\n2147483647 2147483647 0\n",
		banner + "array integer skew-symmetric\n0 0\n",
		banner + "array integer skew-symmetric\n2147483647 2147483647\n1\n",
		banner + "array real general\n2147483647 0\n",
		banner + "coordinate real symmetric\n2 2 3\n1 1 1D308\n1 1 1d308\n2 1 -1e-324\n",
		banner + "coordinate real general\r\n\r\n% \r\n1\t1\t1\r\n1 1 1",
		banner + "coordinate complex hermitian\n1 1 1\n1 1 1 0\n",
		banner + "coordinate real general\n1 1 1\n1 1 0." + strings.Repeat("0", 1000) + "1\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := Read(bytes.NewReader(text), "fuzz")
		runtime.ReadMemStats(&after)
		// The row pointers of freeDim rows, a line, and 200 bytes for each byte
		// of the text: up to 16 row pointers for each entry, entries twice.
		if used, most := after.TotalAlloc-before.TotalAlloc, uint64(8*freeDim+2*maxLine+200*len(text)); used > most {
			t.Fatalf("%d bytes allocated for a text of %d, expected at most %d", used, len(text), most)
		}
		if err != nil {
			return
		}
		requireValid(t, m)
		var buf bytes.Buffer
		require.NoError(t, Write(&buf, m, "comment"))
		again, err := Read(&buf, "again")
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}
