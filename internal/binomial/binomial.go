package binomial

import "math/bits"

// Parent returns the parent of a rank other than 0.
func Parent(rank int) int { return rank & (rank - 1) }

// Children returns the number of a rank's children in a tree of size ranks.
func Children(rank, size int) int {
	free := bits.Len(uint(size - 1)) // bits a child may add: those below the rank's lowest
	if rank != 0 {
		free = bits.TrailingZeros(uint(rank))
	}
	for free > 0 && rank+1<<(free-1) >= size {
		free--
	}
	return free
}

// Child returns the k-th child of a rank. Its subtree has the ranks from this child up to, but not
// including, the (k+1)-th child: 2^k ranks if the size allows.
func Child(rank, k int) int { return rank + 1<<k }

// ChildIndex returns k such that Child(Parent(child), k) is child.
func ChildIndex(child int) int { return bits.TrailingZeros(uint(child)) }
