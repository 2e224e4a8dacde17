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

func (t *tree) isDead(rank int) bool {
	_, found := slices.BinarySearch(t.dead, rank)
	return found
}

// markDead notes that a rank has died. It returns false if this was known.
func (t *tree) markDead(rank int) bool {
	i, found := slices.BinarySearch(t.dead, rank)
	if found || rank == t.rank {
		return false
	}
	t.dead = slices.Insert(slices.Clone(t.dead), i, rank) // values of messages share the old slice
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

// eachChild calls visit for the living ranks whose parent this one is, until it
// returns false.
func (t *tree) eachChild(visit func(int) bool) {
	if t.below(t.rank, visit) && t.rank > 0 && t.up < 0 {
		t.below(0, visit) // the ranks without a living ancestor
	}
}

func (t *tree) isChild(rank int) bool {
	found := false
	t.eachChild(func(c int) bool {
		found = c == rank
		return !found
	})
	return found
}

// below visits a rank's living children, and in the place of a dead child that child's
// children. The child with the largest subtree comes first, because it has the longest way
// to its leaves.
func (t *tree) below(rank int, visit func(int) bool) bool {
	for k := binomial.Children(rank, t.size) - 1; k >= 0; k-- {
		c := binomial.Child(rank, k)
		switch {
		case c == t.rank: // the root, on the way down from rank 0
		case !t.isDead(c):
			if !visit(c) {
				return false
			}
		case !t.below(c, visit):
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
		s.more = append(s.more[:len(s.more):len(s.more)], rank)
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
	all := true
	t.eachChild(func(c int) bool {
		all = s.has(t, c)
		return all
	})
	return all
}
