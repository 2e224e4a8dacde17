package ulfmbackend

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A Value is what an agreement combines. Combining is associative, commutative
// and idempotent, so that a contribution may come along two ways.
type Value struct {
	Calls   errchan.Calls    // OR
	Flag    int              // AND
	Dead    []int            // union; ascending
	AckAll  bool             // Acked are all ranks
	Acked   []int            // intersection; ascending
	Reports []errchan.Report // union; by rank, those of one in the order they were raised
}

// neutral changes nothing that it is combined with.
var neutral = Value{Flag: -1, AckAll: true}

// combine returns a and b combined. It changes neither, and may share their parts.
func combine(a, b Value) Value {
	v := Value{Calls: a.Calls | b.Calls, Flag: a.Flag & b.Flag, Dead: union(a.Dead, b.Dead), Reports: merge(a.Reports, b.Reports)}
	switch {
	case a.AckAll:
		v.AckAll, v.Acked = b.AckAll, b.Acked
	case b.AckAll:
		v.Acked = a.Acked
	default:
		v.Acked = slices.DeleteFunc(slices.Clone(a.Acked), func(r int) bool { return !contains(b.Acked, r) })
	}
	return v
}

func contains(sorted []int, r int) bool {
	_, found := slices.BinarySearch(sorted, r)
	return found
}

func union(a, b []int) []int {
	switch {
	case len(b) == 0:
		return a
	case len(a) == 0:
		return b
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// merge puts two lists of reports together. Of those of one rank in a round, what
// came earlier is the beginning of what came later.
func merge(a, b []errchan.Report) []errchan.Report {
	switch {
	case len(b) == 0:
		return a
	case len(a) == 0:
		return b
	}
	all := make([]errchan.Report, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch d := a[0].Rank - b[0].Rank; {
		case d < 0:
			all, a = append(all, a[0]), a[1:]
		case d > 0:
			all, b = append(all, b[0]), b[1:]
		default:
			all, a, b = append(all, a[0]), a[1:], b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// verdict is what a decision on an error says to the client.
func (v *Value) verdict(round uint64) *errchan.Verdict {
	corrupt := len(v.Dead) > 0 || slices.ContainsFunc(v.Reports, func(r errchan.Report) bool { return r.Corrupt })
	return &errchan.Verdict{Round: round, Corrupt: corrupt, Reports: v.Reports, Dead: v.Dead}
}

// decision is what a decision on a proposal says to the client.
func (v *Value) decision() errchan.Decision {
	d := errchan.Decision{Calls: v.Calls, Flag: v.Flag, Dead: v.Dead}
	for _, r := range v.Dead {
		if !v.AckAll && !contains(v.Acked, r) {
			d.Unacked = append(d.Unacked, r)
		}
	}
	return d
}
