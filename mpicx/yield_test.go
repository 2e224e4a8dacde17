package mpicx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A yield that took long has the next ones left out, for longer each time; quick ones
// have that forgotten.
func TestYieldsAreLeftOutWhereTheyTakeLong(t *testing.T) {
	var y yielder
	leftOut := func() (n int) {
		for y.left.Load() > 1 {
			y.yield()
			n++
		}
		return n
	}
	require.Zero(t, leftOut())
	for _, want := range []int{256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 65536} {
		y.took(slowYield + 1)
		require.Equal(t, want-1, leftOut(), "and one that is timed follows")
		y.left.Add(-1)
		require.Zero(t, y.left.Load()%timedYields)
	}
	for range 9 {
		y.took(slowYield)
	}
	require.Zero(t, leftOut())
	y.took(slowYield + 1)
	require.Equal(t, 256-1, leftOut())
}
