package mpicx

import (
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/future"
)

// Undefined is the color of a rank that takes no part in what Split makes, and the number of a
// process that is not in a [Group] (MPI_UNDEFINED).
const Undefined = -1

// A Group is an ordered set of processes of a job, numbered from 0 (MPI_Group). It sends no
// messages and never changes. The nil Group is empty (MPI_GROUP_EMPTY). If a method is given a
// number that no member has, it throws an *MPIError.
type Group struct {
	processes []int // the members' ranks in the job, no two the same
	self      int   // this process
}

// Group returns the members of c (MPI_Comm_group), also if c is broken or closed. With
// TranslateRanks a rank finds out, after Shrink or Replace, which rank it was before.
func (c *Comm) Group() *Group {
	c.mustExist("Group")
	if c.ledger.Ranks() != nil {
		return &Group{c.ledger.Ranks(), c.proc.rank}
	}
	return &Group{upTo(c.size), c.proc.rank}
}

// Size is the number of members (MPI_Group_size).
func (g *Group) Size() int { return len(g.all()) }

// Rank is this process's number in the group, or Undefined (MPI_Group_rank).
func (g *Group) Rank() int {
	if g == nil {
		return Undefined
	}
	return slices.Index(g.processes, g.self)
}

// String returns the members' ranks in the job.
func (g *Group) String() string { return fmt.Sprintf("group %v", g.all()) }

func (g *Group) all() []int {
	if g == nil {
		return nil
	}
	return g.processes
}

// withMembers returns the group of the given processes, for a process that is a member of g or h.
func (g *Group) withMembers(h *Group, processes []int) *Group {
	switch {
	case len(processes) == 0:
		return nil
	case g == nil:
		g = h
	}
	return &Group{processes, g.self}
}

// places returns each member's rank in the group, by process.
func (g *Group) places() map[int]int {
	places := make(map[int]int, g.Size())
	for r, p := range g.all() {
		places[p] = r
	}
	return places
}

// filter returns the group of those members of g for which keep returns true.
func (g *Group) filter(keep func(rank, process int) bool) *Group {
	var kept []int
	for r, p := range g.all() {
		if keep(r, p) {
			kept = append(kept, p)
		}
	}
	return g.withMembers(nil, kept)
}

// Union has the members of g and after them those of h that are not in g (MPI_Group_union).
func (g *Group) Union(h *Group) *Group {
	return g.withMembers(h, slices.Concat(g.all(), h.Difference(g).all()))
}

// Intersection has the members of g that are in h too (MPI_Group_intersection).
func (g *Group) Intersection(h *Group) *Group {
	in := h.places()
	return g.filter(func(_, p int) bool { _, both := in[p]; return both })
}

// Difference has the members of g that are not in h (MPI_Group_difference).
func (g *Group) Difference(h *Group) *Group {
	in := h.places()
	return g.filter(func(_, p int) bool { _, both := in[p]; return !both })
}

// Incl has these members of g, in this order (MPI_Group_incl).
func (g *Group) Incl(ranks ...int) *Group {
	g.check("Incl", ranks)
	processes := make([]int, len(ranks))
	for i, r := range ranks {
		processes[i] = g.processes[r]
	}
	return g.withMembers(nil, processes)
}

// Excl has the members of g but for these (MPI_Group_excl).
func (g *Group) Excl(ranks ...int) *Group {
	g.check("Excl", ranks)
	out := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		out[r] = true
	}
	return g.filter(func(r, _ int) bool { return !out[r] })
}

// A Range is the ranks First, First+Stride, … up to and including Last, if the stride meets it.
// Stride is negative if Last is less than First.
type Range struct{ First, Last, Stride int }

// RangeIncl is Incl of the ranks of ranges (MPI_Group_range_incl).
func (g *Group) RangeIncl(ranges ...Range) *Group { return g.Incl(g.ranks("RangeIncl", ranges)...) }

// RangeExcl is Excl of the ranks of ranges (MPI_Group_range_excl).
func (g *Group) RangeExcl(ranges ...Range) *Group { return g.Excl(g.ranks("RangeExcl", ranges)...) }

func (g *Group) ranks(op string, ranges []Range) (ranks []int) {
	for _, r := range ranges {
		if r.Stride == 0 {
			throw(mpiErrorf(op, ClassOther, "stride 0 from %d to %d, expected a stride other than 0", r.First, r.Last))
		}
		for i := r.First; r.Stride > 0 && i <= r.Last || r.Stride < 0 && i >= r.Last; i += r.Stride {
			g.check(op, []int{i})
			ranks = append(ranks, i)
		}
	}
	return ranks
}

// check throws unless ranks are different ranks of the group.
func (g *Group) check(op string, ranks []int) {
	seen := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		if r < 0 || r >= g.Size() {
			throw(g.noRank(op, r))
		}
		if seen[r] {
			throw(mpiErrorf(op, ClassRank, "rank %d twice, expected different ranks", r))
		}
		seen[r] = true
	}
}

// Results of comparing two groups, or the groups of two communicators (MPI_IDENT, MPI_SIMILAR,
// MPI_UNEQUAL).
const (
	Identical Comparison = iota // the same members in the same order
	Similar                     // the same members in another order
	Unequal
)

// A Comparison is the result of Compare.
type Comparison int

func (c Comparison) String() string {
	if c >= 0 && int(c) < 3 {
		return [...]string{"identical", "similar", "unequal"}[c]
	}
	return fmt.Sprintf("Comparison(%d)", int(c))
}

// Compare says whether g and h have the same members, in the same order (MPI_Group_compare).
func (g *Group) Compare(h *Group) Comparison {
	switch {
	case slices.Equal(g.all(), h.all()):
		return Identical
	case g.Size() == h.Size() && g.Difference(h) == nil:
		return Similar
	}
	return Unequal
}

// TranslateRanks returns the numbers in h of these members of g, Undefined for those that are not
// in h, and ProcNull for ProcNull (MPI_Group_translate_ranks).
func (g *Group) TranslateRanks(ranks []int, h *Group) []int {
	in := h.places()
	translated := make([]int, len(ranks))
	for i, r := range ranks {
		switch {
		case r == ProcNull:
			translated[i] = ProcNull
			continue
		case r < 0 || r >= g.Size():
			throw(g.noRank("TranslateRanks", r))
		}
		var is bool
		if translated[i], is = in[g.processes[r]]; !is {
			translated[i] = Undefined
		}
	}
	return translated
}

func (g *Group) noRank(op string, r int) error {
	return mpiErrorf(op, ClassRank, "rank %d, expected one of the group's %d", r, g.Size())
}

// throw panics with the error of a call that returns none.
func throw(err error) { panic(future.Thrown{Err: err}) }
