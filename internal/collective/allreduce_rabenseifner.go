package collective

import "math/bits"

// Rabenseifner is Rabenseifner's Allreduce. First each rank exchanges half of its value with a
// partner, at distance 1, 2, 4, …, and combines the other half, which is its value in the next
// step. So neighbouring groups are combined, in the order of ranks. Then ranks exchange results
// with the same partners in reverse order, and the part that each has doubles. A rank sends
// 2(n-1)/n of the value. If n is not a power of two, the first ranks act in pairs, as in
// AllreduceDoubling.
type Rabenseifner struct {
	Reduction

	parts       Parts // of the acting ranks
	first, last int   // the parts that this rank combines, or has results of
	partner     int   // of the previous step
}

func (a *Rabenseifner) Step(k int, x *Exchange) bool {
	p := paired(x)
	if k == 0 {
		a.begin(x, x.Size() > 1)
	}
	switch {
	case p.idle():
		if k == 0 {
			x.Send(p.rank+1, a.value)
			return true
		}
		x.Recv(p.rank+1, a.Acc)
		return false
	case k == 0:
		a.parts = even(len(a.value), a.Element, p.core)
		a.first, a.last = 0, p.core
		if p.double() {
			x.Recv(p.rank-1, a.tmp)
		}
		return true
	case k == 1 && p.double():
		a.combine(p.rank-1, x)
	}
	rounds := bits.Len(uint(p.core)) - 1
	if 1 < k && k <= 1+rounds {
		a.combineSpan(x)
	}
	switch round := k - 1; {
	case round < rounds:
		a.halve(x, p, round)
		return true
	case round < 2*rounds:
		a.double(x, p, 2*rounds-1-round)
		return true
	}
	a.settle()
	if p.double() {
		x.Send(p.rank-1, a.Acc)
	}
	return false
}

// halve keeps one half of the parts. It sends the partner the values of the other half, and
// receives the partner's values of its own half.
func (a *Rabenseifner) halve(x *Exchange, p pairing, round int) {
	a.partner = p.peer(1 << round)
	first, middle, last := a.first, (a.first+a.last)/2, a.last
	if p.number()>>round&1 == 0 {
		a.last, first = middle, middle
	} else {
		a.first, last = middle, middle
	}
	x.Send(a.partner, a.parts.span(a.value, first, last))
	x.Recv(a.partner, a.parts.span(a.tmp, a.first, a.last))
}

func (a *Rabenseifner) combineSpan(x *Exchange) {
	span := func(b []byte) []byte { return a.parts.span(b, a.first, a.last) }
	if a.partner < x.Rank() {
		a.Op(span(a.Acc), span(a.tmp), span(a.value))
	} else {
		a.Op(span(a.Acc), span(a.value), span(a.tmp))
	}
	a.value = a.Acc
}

// double exchanges this rank's results with those of the partner of a round.
func (a *Rabenseifner) double(x *Exchange, p pairing, round int) {
	partner, n := p.peer(1<<round), a.last-a.first
	x.Send(partner, a.parts.span(a.Acc, a.first, a.last))
	if p.number()>>round&1 == 0 {
		x.Recv(partner, a.parts.span(a.Acc, a.last, a.last+n))
		a.last += n
	} else {
		x.Recv(partner, a.parts.span(a.Acc, a.first-n, a.first))
		a.first -= n
	}
}
