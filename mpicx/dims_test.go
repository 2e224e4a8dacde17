package mpicx_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// factorizations calls visit for all k falling factors of n.
func factorizations(n, k, most int, found []int, visit func([]int)) {
	if k == 0 {
		if n == 1 {
			visit(found)
		}
		return
	}
	for d := min(n, most); d >= 1; d-- {
		if n%d == 0 {
			factorizations(n/d, k-1, d, append(found, d), visit)
		}
	}
}

// What DimsCreate finds is the best of all that there is.
func TestDimsCreate(t *testing.T) {
	oneProcess(t)
	for n := 1; n <= 130; n++ {
		for k := 1; k <= 4; k++ {
			var best []int
			factorizations(n, k, n, nil, func(f []int) {
				spread := func(f []int) int { return f[0] - f[k-1] }
				if best == nil || spread(f) < spread(best) || spread(f) == spread(best) && slices.Compare(f, best) < 0 {
					best = slices.Clone(f)
				}
			})
			got, err := mpicx.DimsCreate(n, make([]int, k)...)
			require.NoError(t, err)
			require.Equal(t, best, got)
		}
	}
	for _, test := range []struct {
		n          int
		dims, want []int
	}{
		{12, []int{0, 3}, []int{4, 3}}, {12, []int{2, 0, 0}, []int{2, 3, 2}}, {6, []int{3, 2}, []int{3, 2}}, {1, nil, []int{}},
		{7, []int{0, 7, 0}, []int{1, 7, 1}}, {1 << 20, []int{0, 0, 0}, []int{128, 128, 64}}, {720720, []int{0, 0, 0, 0}, []int{30, 28, 33, 26}},
		{math.MaxInt32, []int{0, 0}, []int{math.MaxInt32, 1}}, {2095133040, []int{0, 0, 0}, []int{1292, 1287, 1260}},
	} {
		got, err := mpicx.DimsCreate(test.n, test.dims...)
		require.NoError(t, err)
		if test.n == 720720 {
			slices.Sort(got)
			require.Equal(t, []int{26, 28, 30, 33}, got)
			continue
		}
		require.True(t, slices.Equal(test.want, got), "%v, expected %v", got, test.want)
	}
	for text, dims := range map[string][]int{
		"extents [5 0], expected extents whose product divides the 12 ranks":                                {5, 0},
		"extents [3 2], expected extents whose product is the 12 ranks, or 0 for each that is to be chosen": {3, 2},
		"extent -1 of dimension 1, expected 1 or more, or 0 if it is to be chosen":                          {0, -1},
	} {
		_, err := mpicx.DimsCreate(12, dims...)
		require.ErrorAs(t, err, new(*mpicx.MPIError))
		require.ErrorContains(t, err, text)
	}
	tooMany := int64(math.MaxInt32) + 1 // negative as an int of 32 bits
	for _, n := range []int{0, -1, int(tooMany), math.MinInt} {
		_, err := mpicx.DimsCreate(n, 0)
		require.ErrorContains(t, err, fmt.Sprintf("%d ranks, expected 1 to 2147483647", n))
	}
	if math.MaxInt > math.MaxInt32 {
		_, err := mpicx.DimsCreate(math.MaxInt, 0)
		require.ErrorAs(t, err, new(*mpicx.MPIError))
	}
}
