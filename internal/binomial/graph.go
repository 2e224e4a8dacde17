package binomial

import "math/bits"

// The binomial graph of n ranks links each rank r with r±1, r±2, r±4, …, r±2^k
// modulo n, 2^k < n: all binomial trees at once, whatever their root. It stays
// connected unless as many ranks fail as one has neighbours (Angskun, Bosilca,
// Dongarra, "Binomial graph", 2007; paper 000, section 3.2).

// Degree returns the number of indices for Neighbor. Two indices may stand for the same link.
func Degree(size int) int {
	if size < 2 {
		return 0
	}
	return 2 * bits.Len(uint(size-1))
}

// Neighbor returns the i-th neighbour of a rank, or -1 if that rank also has another index.
func Neighbor(rank, size, i int) int {
	step := 1 << (i / 2)
	if i%2 == 0 {
		return Around(rank+step, size)
	}
	if d := size - step; d&(d-1) == 0 { // also reached forwards
		return -1
	}
	return Around(rank-step, size)
}

// Around returns i modulo size, without a division, for an i from -size to less than 2·size.
func Around(i, size int) int {
	switch {
	case i < 0:
		return i + size
	case i >= size:
		return i - size
	}
	return i
}

// NeighborIndex returns i such that Neighbor(rank, size, i) is other, or -1.
func NeighborIndex(rank, size, other int) int {
	d := Around(other-rank, size)
	switch back := size - d; {
	case d == 0 || other < 0 || other >= size:
		return -1
	case d&(d-1) == 0:
		return 2 * bits.TrailingZeros(uint(d))
	case back&(back-1) == 0:
		return 2*bits.TrailingZeros(uint(back)) + 1
	}
	return -1
}
