package ulfmbackend

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/binomial"
)

// flood is the reliable broadcast of one notice over the binomial graph: deliver
// and forward once (paper 000, section 3).
//
// A rank tells its children in the binomial tree of the rank that began first,
// the farthest first: that is the fastest way to all of them. Then it tells its
// other neighbours, for the case that somebody on that way is dead, but for those
// who are known to have the notice. So most links carry it once.
//
// Where a notice that says corrupt comes after one that does not, the flood begins
// again with that, and what was left of the first is left out: all get the second. It
// is as reliable by itself, whoever dies.
type flood struct {
	open   bool     // this rank has the notice
	notice *Message // as it came
	next   int      // how many steps of pull are done
	told   uint64   // bit i: neighbour i has it, or one that says as much
	fatal  uint64   // bit i: neighbour i has one that says corrupt
	beyond []int    // ranks told that are no neighbours
}

// heard notes that a rank has the notice, or another that says corrupt or does not.
func (f *flood) heard(t *tree, from int, corrupt bool) {
	i := binomial.NeighborIndex(t.rank, t.size, from)
	if i < 0 {
		return
	}
	if corrupt {
		f.fatal |= 1 << i
	}
	if corrupt || !f.corrupt() {
		f.told |= 1 << i
	}
}

// corrupt says whether this rank has a notice that says so.
func (f *flood) corrupt() bool { return f.open && f.notice.Corrupt }

// isNews says whether a notice tells this rank more than it has.
func (f *flood) isNews(corrupt bool) bool { return !f.open || corrupt && !f.notice.Corrupt }

// begin says that this rank has the notice, which was news.
func (f *flood) begin(notice *Message) {
	f.open, f.notice, f.next, f.beyond = true, notice, 0, nil
	if notice.Corrupt {
		f.told = f.fatal
	}
}

// mend returns a rank to tell that is no neighbour in the graph, but in the mended
// tree; or -1. The graph may fall apart when as many have died as a rank has
// neighbours; the tree, once all know of the deaths, never does.
func (f *flood) mend(t *tree) int {
	to := -1
	find := func(r int) bool {
		if r >= 0 && binomial.NeighborIndex(t.rank, t.size, r) < 0 && !slices.Contains(f.beyond, r) {
			to = r
		}
		return to < 0
	}
	if f.open && len(t.dead) > 0 && find(t.up) {
		t.eachChild(find)
	}
	if to >= 0 {
		f.beyond = append(f.beyond[:len(f.beyond):len(f.beyond)], to)
	}
	return to
}

// pull returns the next neighbour to tell, or -1. It is asked one by one, so that
// what is heard meanwhile counts.
func (f *flood) pull(t *tree) int {
	for degree := binomial.Degree(t.size); f.open && f.next < 2*degree; {
		i := degree - 1 - f.next
		first := i >= 0
		if !first {
			i += degree
		}
		f.next++
		if f.told&(1<<i) != 0 || first && !f.isChild(t, i) {
			continue
		}
		f.told |= 1 << i
		if to := binomial.Neighbor(t.rank, t.size, i); to >= 0 && !t.isDead(to) {
			return to
		}
	}
	return f.mend(t)
}

// done says that pull returns nothing, unless somebody has died.
func (f *flood) done(t *tree) bool {
	return !f.open || f.next == 2*binomial.Degree(t.size) && len(t.dead) == 0
}

// isChild says whether neighbour i is a child in the origin's tree.
func (f *flood) isChild(t *tree, i int) bool {
	v := binomial.Around(t.rank-f.notice.Origin, t.size)
	step := 1 << (i / 2)
	return i%2 == 0 && v+step < t.size && (v == 0 || step < v&-v)
}
