package checkpoint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Advice about memory changes neither the memory nor the slice, wherever it begins and ends.
func TestExpect(t *testing.T) {
	const huge = 2 << 20
	for _, length := range []int{0, 1, 2*huge - 1, 2 * huge, 2*huge + 1, 5*huge + 12345} {
		for _, from := range []int{0, 1, 4096, huge - 1} {
			whole := make([]byte, from+length)
			for i := range whole {
				whole[i] = byte(i % 251)
			}
			got := expect(whole[from:])
			require.Len(t, got, length)
			require.Empty(t, expect(got[:0]))
			for i, b := range whole {
				if b != byte(i%251) {
					t.Fatalf("%d bytes from %d: byte %d is %d", length, from, i, b)
				}
			}
		}
	}
	require.Nil(t, expect(nil))
}
