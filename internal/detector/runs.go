package detector

import (
	"cmp"
	"slices"
)

// runs is a set of ranks: ascending runs of consecutive ranks that do not touch. Machines die with all
// their ranks, which usually have consecutive numbers.
type runs []run

type run struct{ first, last int }

// find returns where the run with a rank is, or would be inserted.
func (s runs) find(rank int) (int, bool) {
	return slices.BinarySearchFunc(s, rank, func(u run, rank int) int {
		if u.first <= rank && rank <= u.last {
			return 0
		}
		return cmp.Compare(u.first, rank)
	})
}

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

// add says whether the rank is new.
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
