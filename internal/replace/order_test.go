package replace

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// In whatever order four calls end, one of them inside of the first one's effect, their results
// take effect in order.
func TestOrder(t *testing.T) {
	for order := range 4 * 3 * 2 {
		var ends []uint64
		for left, n := []uint64{1, 2, 3, 4}, order; len(left) > 0; {
			i := n % len(left)
			n /= len(left)
			ends, left = append(ends, left[i]), slices.Delete(left, i, i+1)
		}
		inner := ends[3]
		if inner == 1 {
			continue
		}
		var o Order
		for range ends {
			o.Begin()
		}
		var effects []uint64
		for _, call := range ends[:3] {
			o.End(call, func() {
				if effects = append(effects, call); call == 1 {
					o.End(inner, func() { effects = append(effects, inner) })
				}
			})
		}
		require.Equal(t, []uint64{1, 2, 3, 4}, effects, "%v", ends)
	}
}
