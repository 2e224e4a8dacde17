package ulfmbackend

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/binomial"
)

// flood is the reliable broadcast of one notice over the binomial graph: each rank delivers
// and forwards the notice once (paper 000, section 3).
//
// A rank first tells its children in the binomial tree of the notice's origin, the farthest
// first: this is the fastest way to reach all ranks. Then it tells its other neighbours, in
// case a rank of that tree is dead. It leaves out neighbours that are known to have the
// notice, so most links carry it once.
//
// If a notice that says corrupt comes after one that does not, the flood restarts with the
// second notice and drops the rest of the first. Every rank gets the second, whose flood is
// reliable by itself.
type flood struct {
	open   bool     // this rank has the notice
	notice *Message // as received
	next   int      // how many steps of pull are done; there are two for each neighbour
	told   uint64   // bit i: neighbour i has this notice, or one that says as much
	fatal  uint64   // bit i: neighbour i has a notice that says corrupt
	beyond []int    // the ranks told that are not neighbours: see mend
}

// heard notes that a rank has a notice, which says corrupt or not.
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

// corrupt says whether this rank has a notice that says corrupt.
func (f *flood) corrupt() bool { return f.open && f.notice.Corrupt }

// isNews says whether a notice tells this rank more than it has.
func (f *flood) isNews(corrupt bool) bool { return !f.open || corrupt && !f.notice.Corrupt }

// begin begins the flood of a notice that was news to this rank.
func (f *flood) begin(notice *Message) {
	f.open, f.notice, f.next, f.beyond = true, notice, 0, nil
	if notice.Corrupt {
		f.told = f.fatal
	}
}

// mend returns a rank to tell that is a neighbour in the mended tree but not in the graph,
// or -1. The graph may fall apart when as many ranks have died as a rank has neighbours.
// The tree does not fall apart, once all ranks know of the deaths.
func (f *flood) mend(t *tree) int {
	if !f.open || len(t.dead) == 0 {
		return -1
	}
	for to := range t.eachNeighbor {
		if binomial.NeighborIndex(t.rank, t.size, to) < 0 && !slices.Contains(f.beyond, to) {
			f.beyond = append(slices.Clip(f.beyond), to)
			return to
		}
	}
	return -1
}

// pull returns the next rank to tell, or -1. It is called just before each message is sent. So it
// leaves out the neighbours that are known to have the notice by then.
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

// done says whether pull would return -1. If ranks have died, it returns false even then.
func (f *flood) done(t *tree) bool {
	return !f.open || f.next == 2*binomial.Degree(t.size) && len(t.dead) == 0
}

// isChild says whether neighbour i is a child in the origin's tree.
func (f *flood) isChild(t *tree, i int) bool {
	v := binomial.Around(t.rank-f.notice.Origin, t.size)
	step := 1 << (i / 2)
	return i%2 == 0 && v+step < t.size && (v == 0 || step < v&-v)
}
