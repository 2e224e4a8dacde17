package local

import (
	"slices"
	"sync"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A board shows the collective calls of a communicator's ranks to each other. The calls of all
// ranks that have the same number in the same epoch share a place on it. A rank whose call does not
// fit one that is in its place is halted when it makes the call, and so are the ranks that have made
// the others (M2, M3). No message is needed to find the difference, and nobody waits for it.
//
// The board has the calls of one epoch, the newest in which a call was made. All ranks leave the
// older ones, so nothing that is still waited for is lost with their places.
//
// The mu of a board may be locked before that of a side, and never after.
type board struct {
	mu     sync.Mutex
	epoch  transport.Epoch
	places []*place // of the calls that some ranks have made and others have not, in their order
	first  int      // the number of the call at places[0]
	bad    int      // the number of the first call in which the ranks differ; 0: none
	blind  bool     // a member has died, so calls are compared no more (M4)
	idle   []*place // empty ones, for the next calls
}

// idlePlaces is how many empty places a board keeps.
const idlePlaces = 4

// A place has the calls of all ranks with one number.
type place struct {
	made []saying // in the order in which the ranks came
	said []saying // the first of each word
}

// A saying is a rank and the word of its call.
type saying struct {
	rank int
	word signature.Word
}

// came notes that a rank has made a call.
func (c *communicator) came(rank int, e transport.Epoch, number int, w signature.Word) {
	if len(c.sides) == 1 {
		return
	}
	b := &c.board
	b.mu.Lock()
	p := b.place(e, number)
	if p == nil {
		b.mu.Unlock()
		return
	}
	p.made = append(p.made, saying{rank, w})
	if p.differs(rank, w) {
		b.bad = number
	}
	if b.bad != number {
		b.removeFull(len(c.sides))
		b.mu.Unlock()
		return
	}
	made, causes := p.made, p.mismatches(number)
	b.mu.Unlock()
	for i, cause := range causes {
		if cause != nil {
			c.sides[made[i].rank].halt(e, cause)
		}
	}
}

// place returns the place of a call, or nil if it is compared with none. Nobody comes to a place
// behind a bad one, because all are halted there.
func (b *board) place(e transport.Epoch, number int) *place {
	if e != b.epoch && b.epoch.Stale(e) && !e.Stale(b.epoch) {
		b.epoch, b.places, b.first, b.bad = e, nil, 1, 0
	}
	if e != b.epoch || b.blind || b.bad > 0 && number > b.bad {
		return nil
	}
	for number >= b.first+len(b.places) {
		p := new(place)
		if n := len(b.idle); n > 0 {
			p, b.idle = b.idle[n-1], b.idle[:n-1]
		}
		b.places = append(b.places, p)
	}
	return b.places[number-b.first]
}

// removeFull removes the first places if all ranks have come to them.
func (b *board) removeFull(ranks int) {
	full := 0
	for full < len(b.places) && len(b.places[full].made) == ranks {
		p := b.places[full]
		full++
		if len(b.idle) < idlePlaces {
			p.made, p.said = p.made[:0], p.said[:0]
			b.idle = append(b.idle, p)
		}
	}
	b.places = slices.Delete(b.places, 0, full)
	b.first += full
}

// differs says whether the call of a rank does not fit an earlier one.
func (p *place) differs(rank int, w signature.Word) (odd bool) {
	for _, s := range p.said {
		if s.word == w {
			return false
		}
		odd = odd || !w.Fits(s.word) || !s.word.Fits(w)
	}
	p.said = append(p.said, saying{rank, w})
	return odd
}

// mismatches returns, for each of made, the error with which its rank is halted because another
// call does not fit its own, or nil.
func (p *place) mismatches(number int) []*transport.MismatchError {
	causes := make([]*transport.MismatchError, len(p.made))
	for i, own := range p.made {
		if k := slices.IndexFunc(p.said, func(s saying) bool { return !own.word.Fits(s.word) }); k >= 0 {
			causes[i] = &transport.MismatchError{Number: number, Own: own.word, Source: p.said[k].rank, Theirs: p.said[k].word}
		}
	}
	return causes
}
