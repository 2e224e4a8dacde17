package rescue

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// In whatever order four calls end, one of them inside of the first one's effect, their results take effect in
// order.
func TestOrder(t *testing.T) {
	eachOrder([]uint64{1, 2, 3, 4}, func(ends []uint64) {
		inner := ends[3]
		if inner == 1 {
			return
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
		require.Equal(t, []uint64{1, 2, 3, 4}, effects, fmt.Sprint(ends))
	})
}

// eachOrder calls f with all orders of all.
func eachOrder(all []uint64, f func([]uint64)) {
	var permute func(n int)
	permute = func(n int) {
		if n == len(all) {
			f(all)
			return
		}
		for i := n; i < len(all); i++ {
			all[n], all[i] = all[i], all[n]
			permute(n + 1)
			all[n], all[i] = all[i], all[n]
		}
	}
	permute(0)
}
