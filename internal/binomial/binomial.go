package binomial

import "math/bits"

// Parent returns the parent of a rank other than 0.
func Parent(rank int) int { return rank & (rank - 1) }

// Children returns how many children a rank has in a tree of size ranks.
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

// Child returns the k-th child of a rank. The subtree below it has the ranks
// from it up to, but without, the (k+1)-th: 2^k of them where the size allows.
func Child(rank, k int) int { return rank + 1<<k }

// ChildIndex returns k such that Child(Parent(child), k) is child.
func ChildIndex(child int) int { return bits.TrailingZeros(uint(child)) }
