package board

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A rank that others need and that needs no other, such as the root of a Bcast, does not wait for
// them: its part is copied. But it gets at most mostAhead calls ahead, or fewer if there are many
// ranks, whose parts need much memory. If its part is long it waits, too, because a copy may take
// longer than that.
const (
	mostAhead  = 64
	mostParts  = 1 << 16 // of all open calls
	mostCopied = 1 << 10 // bytes
)

// Meet makes a rank's call, r, and carries it out as far as the ranks that have come allow. Ended
// says that r has ended. Others are the requests of other ranks that have ended with it, as a list;
// RankOf says whose they are. If r has not ended, it waits on the board. All of it is under the
// caller's lock, also the work of the Carrier. So no request is taken off the board, and no part
// changes, while buffers of other ranks are used (F4, P4). That is why only calls with little work
// come here.
func (b *Board) Meet(rank, number int, r *transport.Request) (ended bool, others *transport.Request, halts []Halt) {
	p := b.place(r.Epoch, number)
	if p == nil {
		b.wait(rank, &b.stray, r)
		return false, nil, nil
	}
	// Ranks whose calls differ carry nothing out together: r stays until its rank, which is halted,
	// leaves the epoch (M3).
	if halts = b.note(p, rank, number, r.Signature); p.broken {
		b.wait(rank, p, r)
		return false, nil, halts
	}
	// Ranks that only Come have no parts, so a place gets them when it first needs them.
	if p.parts == nil {
		p.parts = make([]transport.Part, b.size)
	}
	m, full := r.Meeting, len(p.made) == b.size
	// If each rank needs only the root, ranks may come and leave one by one, and no rank reads
	// their parts.
	if m.Flow != transport.FromRoot || rank == m.Root {
		p.parts[rank] = m.Part
	}
	release := full
	switch {
	// The last rank does the work of all that wait. Their goroutines are woken once, with the
	// result there.
	case full && m.Flow != transport.FromRoot:
		if m.Flow == transport.ToRoot && p.root != nil {
			// The result goes to the root's memory, so the root's Carrier does the work, on this
			// goroutine. If the root is the last to come, it is not waiting, and m is its own.
			m = p.root.Meeting
		}
		m.Carrier.Carry(p.parts, m.Root)
		ended = true
	// The root serves the ranks that wait. Ranks that come later serve themselves, from its part or
	// a copy of that.
	case m.Flow == transport.FromRoot && rank == m.Root:
		m.Carrier.Carry(p.parts, rank)
		for _, q := range p.waiting {
			q.Meeting.Carrier.Carry(p.parts, RankOf(q))
		}
		p.rooted, release = true, true
		// A root whose part is long waits, because others read it there. The last of them releases
		// it.
		ended = full || b.leaves(p, rank)
	case m.Flow == transport.FromRoot && p.rooted:
		m.Carrier.Carry(p.parts, rank)
		ended = true
	case m.Flow == transport.ToRoot && rank != m.Root:
		ended = b.leaves(p, rank)
	}
	// They are off the board before the caller frees the lock, so nobody else ends them, and the
	// caller tells them afterwards. They are released before r is queued, which therefore is not
	// one of them.
	if release {
		others = b.release(p)
	}
	if !ended {
		b.wait(rank, p, r)
	}
	// If all have come r has ended, too, and nothing waits in the place. So it can be used again.
	if full {
		b.removeFull()
	}
	return ended, others, nil
}

// leaves copies the part of a rank that need not wait, and says whether it may leave.
func (b *Board) leaves(p *place, rank int) bool {
	part := &p.parts[rank]
	if len(part.Send) > mostCopied || b.open() > b.ahead {
		return false
	}
	// If append moves the copies, earlier parts keep the old memory, which has the same bytes. The
	// memory is used again only after all ranks have come, when nobody reads it any more.
	at := len(p.copies)
	p.copies = append(p.copies, part.Send...)
	*part = transport.Part{Send: p.copies[at:]}
	return true
}

// RankOf returns the rank whose request r is.
func RankOf(r *transport.Request) int { return int(r.Number >> 32) }

// wait has a rank's request wait in a place. It is then in two lists: that of the place, by which
// the call ends it, and that of its rank, by which its rank's epoch or a death ends it.
func (b *Board) wait(rank int, p *place, r *transport.Request) {
	if b.waiting == nil {
		b.waiting = make([]*transport.Request, b.size)
	}
	if p.waiting == nil {
		p.waiting = make([]*transport.Request, 0, b.size)
	}
	if rank == r.Meeting.Root {
		p.root = r
	}
	// Number has the rank and the index in waiting. So a request is found and removed without a
	// search.
	r.Where, r.Number = p, uint64(rank)<<32|uint64(len(p.waiting))
	p.waiting = append(p.waiting, r)
	if r.Prev = b.waiting[rank]; r.Prev != nil {
		r.Prev.Next = r
	}
	b.waiting[rank] = r
}

// unwait removes a request from its rank's. The caller removes it from its place.
func (b *Board) unwait(r *transport.Request) {
	if r.Prev != nil {
		r.Prev.Next = r.Next
	}
	if r.Next != nil {
		r.Next.Prev = r.Prev
	} else {
		b.waiting[RankOf(r)] = r.Prev
	}
	r.Prev, r.Next, r.Where = nil, nil, nil
}

// release ends all requests that wait in a place, and returns their list.
func (b *Board) release(p *place) (ended *transport.Request) {
	last := &ended
	for _, r := range p.waiting {
		b.unwait(r)
		*last, last = r, &r.Next
	}
	clear(p.waiting)
	p.waiting, p.root = p.waiting[:0], nil
	return ended
}

// Take takes the requests of a rank off the board for which which returns true, and returns their
// list. Their calls will not be carried out. Nothing refers to a taken request here any more; the
// caller tells its end, without the lock.
func (b *Board) Take(rank int, which func(*transport.Request) bool) (taken *transport.Request) {
	for r := range b.All(rank) {
		if which(r) {
			p := r.Where.(*place)
			p.remove(r)
			b.unwait(r)
			r.Next, taken = taken, r
		}
	}
	return taken
}

// remove removes a request that leaves the place before it has ended.
func (p *place) remove(r *transport.Request) {
	i, last := uint32(r.Number), len(p.waiting)-1
	moved := p.waiting[last]
	p.waiting[i], moved.Number = moved, uint64(RankOf(moved))<<32|uint64(i)
	p.waiting[last] = nil
	p.waiting = p.waiting[:last]
	// The rank's buffers are its own again, and nobody may touch them (F4). Nothing is carried out
	// here any more, so the place forgets all parts. The other requests end when their ranks leave
	// the epoch.
	p.broken, p.root, p.parts, p.copies = true, nil, nil, nil
}

// Forsake is Take of the requests that can't end without a rank which is absent and for which gone
// returns true. It also returns that rank.
func (b *Board) Forsake(rank int, gone func(rank int) bool) (taken *transport.Request, absent int) {
	// Missed makes the absence spread: nothing is carried out in a place that a request has left,
	// so ranks that needed only the root now miss the absent rank as well (see isMissing).
	taken = b.Take(rank, func(r *transport.Request) bool {
		of, missing := b.Missing(r)
		if missing = missing && gone(of); missing {
			absent, r.Where.(*place).missed = of, true
		}
		return missing
	})
	return taken, absent
}

// All yields the requests of a rank that wait. The loop may take a request that it was given.
func (b *Board) All(rank int) func(yield func(*transport.Request) bool) {
	return func(yield func(*transport.Request) bool) {
		if b.waiting == nil {
			return
		}
		for r := b.waiting[rank]; r != nil; {
			before := r.Prev
			if !yield(r) {
				return
			}
			r = before
		}
	}
}

// Awaited returns a rank that r, which waits, needs and that has not come.
func (b *Board) Awaited(r *transport.Request) int {
	p, m := r.Where.(*place), r.Meeting
	if m.Flow == transport.FromRoot && !p.rooted {
		return m.Root
	}
	// The look takes as long as there are ranks, so it is made once for each number of ranks that
	// have come. The place is used again with other ranks only after both are set back to 0.
	if p.lookedAt != len(p.made) { // all that wait here may ask
		came := make([]bool, b.size)
		for _, s := range p.made {
			came[s.rank] = true
		}
		p.lookedAt, p.missing = len(p.made), max(0, slices.Index(came, false))
	}
	return p.missing
}

// Leave notes that a rank, which has made this many calls in its epoch e, makes no more.
func (b *Board) Leave(rank int, e transport.Epoch, made int) {
	if b.absent == nil {
		b.absent = make([]absent, 0, b.size)
	}
	b.absent = append(b.absent, absent{rank, made, e})
}

// IsMissed says whether a request of another rank can't end without a rank that has just left.
func (b *Board) IsMissed(rank int) bool {
	waits := func(p *place) bool { return len(p.waiting) > 0 }
	if !waits(&b.stray) && !slices.ContainsFunc(b.places[b.head:], waits) {
		return false // without a search: all ranks may have left
	}
	// From the end: the rank's note is among the latest.
	at := len(b.absent) - 1
	for b.absent[at].rank != rank {
		at--
	}
	a := b.absent[at]
	misses := func(p *place) bool {
		return slices.ContainsFunc(p.waiting, func(r *transport.Request) bool { return b.isMissing(&a, r) })
	}
	for i, p := range b.places[b.head:] {
		// Where the rank has come it has done its part. In a broken place that may not help the
		// others: see isMissing.
		if came := a.epoch == b.epoch && a.made >= b.first+i && !p.broken; !came && misses(p) {
			return true
		}
	}
	return misses(&b.stray)
}

// Missing returns an absent rank without which r can't end, or false if there is none.
func (b *Board) Missing(r *transport.Request) (rank int, missing bool) {
	for i := range b.absent {
		if b.isMissing(&b.absent[i], r) {
			return b.absent[i].rank, true
		}
	}
	return 0, false
}

// isMissing says whether r can't end without the rank: it needs the rank, or one that did, and the
// rank has not come, or was halted in the call or before it. Requests of epochs that the rank has
// left end by themselves.
func (b *Board) isMissing(a *absent, r *transport.Request) bool {
	m, number, p := r.Meeting, transport.CollectiveNumber(r.Tag), r.Where.(*place)
	switch {
	case r.Epoch != b.epoch || r.Epoch.Stale(a.epoch):
		return false
	case m.Flow == transport.FromRoot && a.rank != m.Root && RankOf(r) != m.Root && !p.missed:
		return false
	}
	return a.epoch != r.Epoch || a.made < number || b.bad > 0 && (number > b.bad || p.broken)
}
