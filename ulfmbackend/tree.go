package ulfmbackend

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/binomial"
)

// tree is the binomial tree rooted at rank 0, mended where ranks have died, as one rank
// sees it.
type tree struct {
	rank, size int
	up         int   // the parent; -1: this rank is the root
	dead       []int // that this rank knows of, ascending
}

func newTree(rank, size int) tree {
	t := tree{rank: rank, size: size, up: -1}
	if rank > 0 {
		t.up = binomial.Parent(rank)
	}
	return t
}

func (t *tree) isDead(rank int) bool { return contains(t.dead, rank) }

// markDead notes that a rank has died. It returns false if this was known.
func (t *tree) markDead(rank int) bool {
	if rank == t.rank || t.isDead(rank) {
		return false
	}
	t.dead = union(t.dead, []int{rank}) // a new slice: values of messages share the old one
	t.up = t.parent()
	return true
}

// parent returns the nearest living ancestor; if there is none, the lowest living rank; if
// that is this rank, -1.
func (t *tree) parent() int {
	for p := t.rank; p != 0; {
		if p = binomial.Parent(p); !t.isDead(p) {
			return p
		}
	}
	lowest := 0
	for lowest < len(t.dead) && t.dead[lowest] == lowest {
		lowest++
	}
	if lowest < t.rank {
		return lowest
	}
	return -1
}

// eachChild is the iterator of the living ranks whose parent this one is.
func (t *tree) eachChild(visit func(int) bool) {
	if t.below(t.rank, visit) && t.rank > 0 && t.up < 0 {
		t.below(0, visit) // the ranks without a living ancestor
	}
}

// eachNeighbor is the iterator of the parent, if there is one, and the children.
func (t *tree) eachNeighbor(visit func(int) bool) {
	if t.up < 0 || visit(t.up) {
		t.eachChild(visit)
	}
}

func (t *tree) isChild(rank int) bool {
	for c := range t.eachChild {
		if c == rank {
			return true
		}
	}
	return false
}

// below visits a rank's living children, and in the place of a dead child that child's
// children. The child with the largest subtree comes first, because it has the longest way
// to its leaves.
func (t *tree) below(rank int, visit func(int) bool) bool {
	for k := binomial.Children(rank, t.size) - 1; k >= 0; k-- {
		c := binomial.Child(rank, k)
		switch {
		case c == t.rank: // the root, on the way down from rank 0
		case !t.isDead(c) && !visit(c), t.isDead(c) && !t.below(c, visit):
			return false
		}
	}
	return true
}

// covers says whether each living child is among the ranks.
func (t *tree) covers(ranks []int) bool {
	for c := range t.eachChild {
		if !slices.Contains(ranks, c) {
			return false
		}
	}
	return true
}
