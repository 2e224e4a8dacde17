package collective

import "math/bits"

// AllreduceDoubling is recursive doubling. In each step a rank exchanges its value with a
// partner at twice the distance: log n steps of n messages each. If n is not a power of two,
// the first ranks act in pairs.
type AllreduceDoubling struct {
	Reduction

	partner int // of the previous step, whose message is in tmp; -1: none
}

func (a *AllreduceDoubling) Step(k int, x *Exchange) bool {
	p := paired(x)
	switch {
	case k == 0:
		a.begin(x, x.Size() > 1)
		a.partner = -1
	case a.partner >= 0:
		a.combine(a.partner, x)
		a.partner = -1
	}
	switch {
	case p.idle():
		if k == 0 {
			x.Send(p.rank+1, a.value)
			return true
		}
		x.Recv(p.rank+1, a.Acc)
		return false
	case k == 0 && p.double():
		a.partner = p.rank - 1
		x.Recv(a.partner, a.tmp)
		return true
	case k == 0:
		return true
	}
	if mask := 1 << (k - 1); mask < p.core {
		a.partner = p.peer(mask)
		x.Send(a.partner, a.value)
		x.Recv(a.partner, a.tmp)
		return true
	}
	if a.settle(); p.double() {
		x.Send(p.rank-1, a.value)
	}
	return false
}

// A pairing reduces the number of acting ranks to a power of two: the first ranks act in pairs.
// The even rank of a pair is idle, the odd one acts.
type pairing struct {
	rank  int
	core  int // the largest power of two in the number of ranks
	pairs int
}

func paired(x *Exchange) pairing {
	core := 1 << (bits.Len(uint(x.Size())) - 1)
	return pairing{x.Rank(), core, x.Size() - core}
}

func (p pairing) idle() bool   { return p.rank < 2*p.pairs && p.rank%2 == 0 }
func (p pairing) double() bool { return p.rank < 2*p.pairs && p.rank%2 == 1 }

// number returns an acting rank's number among the acting ranks.
func (p pairing) number() int { return p.rank - min(p.pairs, (p.rank+1)/2) }

// peer returns the acting rank whose number differs in the bits of mask.
func (p pairing) peer(mask int) int {
	peer := p.number() ^ mask
	if peer < p.pairs {
		return 2*peer + 1
	}
	return peer + p.pairs
}
