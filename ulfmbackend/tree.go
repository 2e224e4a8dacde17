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
	arity      int   // number of children in the unmended tree
	dead       []int // that this rank knows of, ascending
}

func newTree(rank, size int) tree {
	t := tree{rank: rank, size: size, up: -1, arity: binomial.Children(rank, size)}
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

// A set is a set of children: children in the unmended tree as bits, and the few others as a
// list.
type set struct {
	bits uint32
	more []int
}

// isOwn says whether rank is a child in the unmended tree.
func (*set) isOwn(t *tree, rank int) bool { return rank > t.rank && binomial.Parent(rank) == t.rank }

func (s *set) add(t *tree, rank int) {
	if s.isOwn(t, rank) {
		s.bits |= 1 << binomial.ChildIndex(rank)
	} else if !slices.Contains(s.more, rank) {
		s.more = append(slices.Clip(s.more), rank)
	}
}

func (s *set) has(t *tree, rank int) bool {
	if s.isOwn(t, rank) {
		return s.bits&(1<<binomial.ChildIndex(rank)) != 0
	}
	return slices.Contains(s.more, rank)
}

// covers says whether each living child is in the set.
func (t *tree) covers(s *set) bool {
	if len(t.dead) == 0 {
		return s.bits == 1<<t.arity-1
	}
	for c := range t.eachChild {
		if !s.has(t, c) {
			return false
		}
	}
	return true
}
