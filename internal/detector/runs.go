package detector

import (
	"cmp"
	"slices"
)

// runs is a set of ranks, as runs of consecutive ranks. The runs ascend, and there is a gap between
// any two. The set is small even if many ranks die, because the ranks that die together usually
// have consecutive numbers.
type runs []run

// A run is the ranks first to last, inclusive.
type run struct{ first, last int }

// find returns the index of the run that contains a rank, or where its run would be inserted.
func (s runs) find(rank int) (int, bool) {
	return slices.BinarySearchFunc(s, rank, func(u run, rank int) int {
		if u.first <= rank && rank <= u.last {
			return 0
		}
		return cmp.Compare(u.first, rank)
	})
}

// has says whether the set contains all ranks from first to last.
func (s runs) has(first, last int) bool {
	i, ok := s.find(first)
	return ok && last <= s[i].last
}

// size returns the number of ranks.
func (s runs) size() (n int) {
	for _, u := range s {
		n += u.last - u.first + 1
	}
	return n
}

// add adds a rank. It returns false if the set contained it.
func (s *runs) add(rank int) bool {
	i, ok := s.find(rank)
	if ok {
		return false
	}
	t := *s
	before, after := i > 0 && t[i-1].last == rank-1, i < len(t) && t[i].first == rank+1
	switch {
	case before && after:
		t[i-1].last = t[i].last
		t = slices.Delete(t, i, i+1)
	case before:
		t[i-1].last = rank
	case after:
		t[i].first = rank
	default:
		t = slices.Insert(t, i, run{rank, rank})
	}
	*s = t
	return true
}
