package main

// A layout says which rows each rank of a communicator has.
type layout struct {
	members []int // the ranks' numbers in the world, increasing
	offsets []int // rank i of the communicator has the rows from offsets[i]
}

// part is the rows of a rank of the communicator.
func (l *layout) part(rank int) span { return span{l.offsets[rank], l.offsets[rank+1]} }

// A span is the rows lo to hi-1.
type span struct{ lo, hi int }

func (s span) rows() int { return s.hi - s.lo }

// and returns the rows of both.
func (s span) and(t span) span {
	lo := max(s.lo, t.lo)
	return span{lo, max(lo, min(s.hi, t.hi))}
}

// moves returns how many of the rows that ranks hold go to another rank, and how
// many nobody holds, when the rows come to be where l wants them.
func (l *layout) moves(held []span) (moved, lost int) {
	lost = l.offsets[len(l.members)]
	for from, s := range held {
		lost -= s.rows()
		moved += s.rows() - s.and(l.part(from)).rows()
	}
	return moved, lost
}
