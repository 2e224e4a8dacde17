package detect

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Any change of an element changes one of the checksums.
func TestChecksum(t *testing.T) {
	for _, n := range []int{1, 5, 63, 64, 65, 511, 512, 513, 2048} {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(i + 1)
		}
		sums := make([]uint64, eighths)
		for turn := range sums {
			sums[turn] = checksum(v, turn)
		}
		for i := range v {
			v[i] = -v[i]
			seen := false
			for turn, sum := range sums {
				seen = seen || checksum(v, turn) != sum
			}
			assert.True(t, seen, "element %d of %d", i, n)
			v[i] = -v[i]
		}
	}
}

func TestAllFinite(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 100} {
		v := make([]float64, n)
		for i := range v {
			v[i] = math.MaxFloat64
		}
		assert.True(t, AllFinite(v), n)
		for i := range v {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				v[i] = bad
				assert.False(t, AllFinite(v), "%g at %d of %d", bad, i, n)
			}
			v[i] = 1
		}
	}
}
