package board

import (
	"slices"
	"sync"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Board is what the ranks of a communicator share. The calls of all ranks that have the same
// number in the same epoch have a place on it. A rank whose call does not fit another one in its
// place is halted when it makes the call, and so are the ranks that have made the others (M2, M3).
// No message is needed to find the difference, and nobody has to wait for it.
//
// A short call needs no messages either. Each rank meets the others in the call's place: it shows
// its buffers there, and the rank that comes last does the work of all, or a rank does its own when
// it finds what it needs.
//
// The board has the calls of one epoch, the newest in which one was made. All ranks leave the older
// ones. A request there ends with its rank's epoch, and so does one behind a call in which ranks
// differ.
//
// The caller holds Mutex around all methods. It tells nobody that a request has ended, and halts no
// rank, while it does.
type Board struct {
	sync.Mutex
	size   int
	ahead  int // how many calls a rank may get ahead of others, and how many idle places are kept
	epoch  transport.Epoch
	places []*place // of the calls that some ranks have made and others have not, in their order, from head
	head   int
	first  int      // the number of the call at places[head]
	bad    int      // the number of the first call in which the ranks differ; 0: none
	idle   []*place // for the next calls
	blind  bool     // a member has died

	waiting []*transport.Request // of each rank, the last of its requests that wait, linked by Prev and Next
	absent  []absent
	stray   place // of requests that have no place: they end with their rank's epoch
}

// absent is a rank that makes no more calls. It has made this number of calls in its last epoch.
type absent struct {
	rank, made int
	epoch      transport.Epoch
}

// Open makes an empty Board of size ranks, which begin in epoch e, usable.
func (b *Board) Open(size int, e transport.Epoch) {
	b.size, b.epoch, b.first, b.stray.broken = size, e, 1, true
	b.ahead = max(1, min(mostAhead, mostParts/size))
}

// Blind is called when a member has died: no calls are compared then (M4), and nobody may meet.
// Requests that wait stay in waiting, for Take, because every call involves the dead member (H1).
func (b *Board) Blind() { b.blind, b.places, b.head, b.idle = true, nil, 0, nil }

// IsBlind says whether a member has died.
func (b *Board) IsBlind() bool { return b.blind }

// A place has the calls of all ranks with one number.
type place struct {
	made []saying // in the order in which the ranks came
	said []saying // the first of each word

	// parts are what the ranks that meet here show, by rank, waiting their requests that have not
	// ended, and root that of the root.
	parts   []transport.Part
	waiting []*transport.Request
	root    *transport.Request
	rooted  bool   // the root has come
	broken  bool   // a rank has left before its request had ended, so no other ends here
	missed  bool   // because another rank never comes
	copies  []byte // of parts whose ranks have left

	lookedAt, missing int // when lookedAt ranks had come, rank missing had not
}

// A saying is a rank and the word of its call.
type saying struct {
	rank int
	word signature.Word
}

// A Halt is a rank that has to be halted, and why.
type Halt struct {
	Rank  int
	Cause *transport.MismatchError
}

// Come notes that a rank has made a call. It returns the ranks that have to be halted.
func (b *Board) Come(rank int, e transport.Epoch, number int, w signature.Word) []Halt {
	p := b.place(e, number)
	if p == nil {
		return nil
	}
	halts := b.note(p, rank, number, w)
	b.removeFull()
	return halts
}

// place returns the place of a call, or nil if there is none. Nobody comes to a place behind a bad
// one, because all are halted there.
func (b *Board) place(e transport.Epoch, number int) *place {
	// Of two epochs each may be stale in the other: ranks may learn of errors of a parent and a
	// child in different orders. Then neither is newer, and ranks leave both. Requests in the
	// places that are dropped here are still in waiting, and end with their ranks' epoch.
	if e != b.epoch && b.epoch.Stale(e) && !e.Stale(b.epoch) {
		b.epoch, b.places, b.head, b.first, b.bad = e, nil, 0, 1, 0
	}
	if e != b.epoch || b.blind || b.bad > 0 && number > b.bad || b.size == 1 {
		return nil
	}
	for number >= b.first+b.open() {
		if n := len(b.idle); n > 0 {
			b.places = append(b.places, b.idle[n-1])
			b.idle = b.idle[:n-1]
		} else {
			b.places = append(b.places, &place{})
		}
	}
	return b.places[b.head+number-b.first]
}

// open returns the number of places.
func (b *Board) open() int { return len(b.places) - b.head }

// note notes that a rank has come to a place.
func (b *Board) note(p *place, rank, number int, w signature.Word) []Halt {
	p.made = append(p.made, saying{rank, w})
	words := len(p.said)
	if p.differs(rank, w) {
		b.bad, p.broken = number, true
	}
	switch {
	case b.bad != number:
		return nil
	case len(p.said) > words:
		// The new word may differ from calls that fitted all earlier ones, so all are looked at
		// again. A rank that is halted twice has the first cause: see Matcher.Halt.
		return p.mismatches(number, p.made)
	}
	return p.mismatches(number, p.made[len(p.made)-1:]) // the others are halted already
}

// removeFull removes the first places if all ranks have come to them. Requests may still wait in a
// broken one.
func (b *Board) removeFull() {
	for b.open() > 0 && len(b.places[b.head].made) == b.size && !b.places[b.head].broken {
		p := b.places[b.head]
		b.places[b.head] = nil
		b.head++
		b.first++
		if len(b.idle) < b.ahead {
			// All requests of the place have ended, and the buffers are their programs' again (F4).
			clear(p.parts)
			*p = place{made: p.made[:0], said: p.said[:0], parts: p.parts, waiting: p.waiting[:0], copies: p.copies[:0]}
			b.idle = append(b.idle, p)
		}
	}
	if b.head > len(b.places)/2 {
		b.places, b.head = slices.Delete(b.places, 0, b.head), 0
	}
}

// differs says whether the call of a rank does not fit an earlier one.
func (p *place) differs(rank int, w signature.Word) (odd bool) {
	// Each word is compared once, not each call: usually all ranks have the same one. Both are
	// asked, because a rank with a bad call fits all, and the others do not fit it.
	for _, s := range p.said {
		if s.word == w {
			return false
		}
		odd = odd || !w.Fits(s.word) || !s.word.Fits(w)
	}
	p.said = append(p.said, saying{rank, w})
	return odd
}

// mismatches returns those of made whose calls do not fit those of others.
func (p *place) mismatches(number int, made []saying) (halts []Halt) {
	for _, own := range made {
		if i := slices.IndexFunc(p.said, func(s saying) bool { return !own.word.Fits(s.word) }); i >= 0 {
			theirs := p.said[i]
			halts = append(halts, Halt{own.rank, &transport.MismatchError{Number: number, Own: own.word, Source: theirs.rank, Theirs: theirs.word}})
		}
	}
	return halts
}
