package ulfmbackend

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A Value is a proposal to an agreement, or several combined. Combining is associative,
// commutative and idempotent, so a value may arrive along two paths. The comments say how
// each field is combined.
type Value struct {
	Calls  errchan.Calls // OR
	Flag   int           // AND
	Dead   []int         // union; ascending
	AckAll bool          // AND; Acked stands for all ranks
	Acked  []int         // intersection; ascending
	Note   []byte        // the greatest
	// Union. Reports are ordered by rank and Index, Settled by compareSettled.
	Reports []errchan.Report
	Settled []errchan.Settled
}

// neutral is the neutral element of combine.
var neutral = Value{Flag: -1, AckAll: true}

// combine returns a and b combined. It changes neither, and may share their parts.
func combine(a, b Value) Value {
	v := Value{Calls: a.Calls | b.Calls, Flag: a.Flag & b.Flag, Dead: union(a.Dead, b.Dead), Note: a.Note,
		Reports: merge(a.Reports, b.Reports, compareReports, nil), Settled: merge(a.Settled, b.Settled, compareSettled, prefer)}
	if bytes.Compare(a.Note, b.Note) < 0 {
		v.Note = b.Note
	}
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

// merge unites two ordered lists: see inOrder.
func merge[T any](a, b []T, compare func(T, T) int, choose func(T, T) T) []T {
	switch {
	case len(b) == 0:
		return a
	case len(a) == 0:
		return b
	}
	return inOrder(slices.Concat(a, b), compare, choose)
}

// inOrder orders a list. Of elements that compare as equal it keeps the one that choose returns. If
// choose is nil, such elements are identical.
func inOrder[T any](all []T, compare func(T, T) int, choose func(T, T) T) []T {
	slices.SortFunc(all, compare)
	n := 0
	for _, v := range all {
		switch {
		case n == 0 || compare(all[n-1], v) < 0:
			all[n] = v
			n++
		case choose != nil:
			all[n-1] = choose(all[n-1], v)
		}
	}
	return all[:n]
}

func compareReports(a, b errchan.Report) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Index, b.Index))
}

// verdict returns the verdict that v, the decision of a round of errors, means.
func (v *Value) verdict(round uint64) *errchan.Verdict {
	reports := slices.Clone(v.Reports)
	for i := range reports {
		reports[i].Index = 0
	}
	return &errchan.Verdict{Round: round, Corrupt: len(v.Dead) > 0 || errchan.AnyCorrupt(reports), Reports: reports, Dead: v.Dead, Settled: v.Settled}
}

// decision returns the decision that v means in the streams other than Errors.
func (v *Value) decision() errchan.Decision {
	d := errchan.Decision{Calls: v.Calls, Flag: v.Flag, Dead: v.Dead, Note: v.Note}
	for _, r := range v.Dead {
		if !v.AckAll && !contains(v.Acked, r) {
			d.Unacked = append(d.Unacked, r)
		}
	}
	return d
}
