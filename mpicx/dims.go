package mpicx

import (
	"math"
	"slices"
)

// DimsCreate divides n ranks into a grid (MPI_Dims_create). Dims are its extents, 0 for each
// that DimsCreate is to choose: DimsCreate(12, 0, 0) is 4, 3. The chosen extents do not
// increase, and the greatest and the least differ as little as possible; of several such
// choices it takes the one whose greatest extent is least, and so on. If the given extents do
// not divide n, or n exceeds the largest int of MPI (2^31 - 1), the error is an *MPIError.
func DimsCreate(n int, dims ...int) ([]int, error) {
	const op = "DimsCreate"
	k := check{op: op}
	// For n of 64 bits closest could take hours.
	k.that(n > 0 && n <= math.MaxInt32, ClassOther, "%d ranks, expected 1 to %d", n, math.MaxInt32)
	rest, free := n, 0
	for i, d := range dims {
		k.that(d >= 0, ClassOther, "extent %d of dimension %d, expected 1 or more, or 0 if it is to be chosen", d, i)
		switch {
		case k.err != nil:
		case d == 0:
			free++
		default:
			k.that(rest%d == 0, ClassOther, "extents %v, expected extents whose product divides the %d ranks", dims, n)
			rest /= d
		}
	}
	k.that(free > 0 || rest == 1, ClassOther, "extents %v, expected extents whose product is the %d ranks, or 0 for each that is to be chosen", dims, n)
	if k.err != nil {
		return nil, k.err
	}
	all := slices.Clone(dims)
	found := closest(rest, free)
	for i, d := range all {
		if d == 0 {
			all[i], found = found[0], found[1:]
		}
	}
	return all, nil
}

// closest returns k factors of n, descending, that are as close to each other as possible.
func closest(n, k int) (best []int) {
	var divisors []int // descending
	for d := 1; d <= n/d; d++ {
		if n%d == 0 {
			divisors = append(divisors, d, n/d)
		}
	}
	slices.Sort(divisors)
	divisors = slices.Compact(divisors)
	spread := math.MaxInt
	factors := make([]int, 0, k)
	// Each factor, from the last, is at least the one before it.
	var search func(rest, from int)
	search = func(rest, from int) {
		left := k - len(factors)
		if left == 0 {
			if s := factors[k-1] - factors[0]; rest == 1 && (s < spread || s == spread && slices.Compare(reversed(factors), best) < 0) {
				best, spread = reversed(factors), s
			}
			return
		}
		for i, d := range divisors[from:] {
			if d > rest || len(factors) > 0 && d-factors[0] > spread {
				break
			}
			if rest%d == 0 && (left > 1 || d == rest) && atMost(d, left, rest) {
				factors = append(factors, d)
				search(rest/d, from+i)
				factors = factors[:len(factors)-1]
			}
		}
	}
	if k > 0 {
		search(n, 0)
	}
	return best
}

// atMost says whether d to the power of k is at most n.
func atMost(d, k, n int) bool {
	for range k {
		n /= d
	}
	return n > 0
}

func reversed(s []int) []int {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}
