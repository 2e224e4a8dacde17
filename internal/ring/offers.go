package ring

import "sync/atomic"

// Offers are the writer's end of a table of offers to the reader. An offer is open until the
// reader claims it or the writer withdraws it, whoever is first.
type Offers struct {
	memory
	taken [places]bool
}

// places is how many offers there may be.
const places = 32

// OffersSize is the memory of a table: all zero at first.
const OffersSize = places * 8

// NewOffers returns the writer's end.
func NewOffers(shared []byte) Offers { return Offers{memory: shared} }

// Open opens an offer. Its id is above 0, and differs from those of all other offers. It returns
// the offer's place, from 1 on, or 0 if there is none free.
func (o *Offers) Open(id uint64) (place int) {
	for i := range o.taken {
		if !o.taken[i] {
			o.taken[i] = true
			atomic.StoreUint64(o.word(8*i), open(id))
			return i + 1
		}
	}
	return 0
}

// Withdraw withdraws an offer. It returns false if the reader has claimed it.
func (o *Offers) Withdraw(place int, id uint64) bool {
	return atomic.CompareAndSwapUint64(o.word(8*(place-1)), open(id), 0)
}

// Close frees the place of an offer that is over.
func (o *Offers) Close(place int) { o.taken[place-1] = false }

func open(id uint64) uint64    { return 2 * id }
func claimed(id uint64) uint64 { return 2*id + 1 }

// Claims are the reader's end of a table of offers.
type Claims struct{ memory }

// NewClaims returns the reader's end.
func NewClaims(shared []byte) Claims { return Claims{shared} }

// Claim claims an offer. It returns false if the writer has withdrawn it, or there is none.
func (c Claims) Claim(place, id uint64) bool {
	if place == 0 || place > places {
		return false
	}
	return atomic.CompareAndSwapUint64(c.word(8*int(place-1)), open(id), claimed(id))
}
