package collective

import "math/bits"

// AllreduceDoubling returns an Allreduce by recursive doubling, for callers that have no Chooser.
func AllreduceDoubling(r Reduction) *Call { return &Call{algorithm: allreduceDoubling, Reduction: r} }

// allreduceTree is reduceTree to rank 0, then bcastTree: 2(n-1) messages, which is the minimum.
func allreduceTree(a *Call, k int, x *Exchange) bool {
	return a.inSequence(k, x, reduceTree, bcastTree)
}

// allreduceStar is reduceStar to rank 0, then bcastStar.
func allreduceStar(a *Call, k int, x *Exchange) bool {
	return a.inSequence(k, x, reduceStar, bcastStar)
}

// allreduceParts is reduceScatterDirect with parts of equal length, then allgatherDirect: two steps
// of n(n-1) messages.
func allreduceParts(a *Call, k int, x *Exchange) bool {
	switch k {
	case 0:
		a.begin(x, false)
		a.parts = even(len(a.Recv), a.Element, x.Size())
		a.Send, a.Recv, a.result = a.value, a.parts.part(a.Recv, x.Rank()), a.Recv
	case a.begun:
		a.Send, a.Recv = a.Recv, a.result
	}
	return a.inSequence(k, x, reduceScatterDirect, allgatherDirect)
}

// allreduceDoubling is recursive doubling. In each round a rank exchanges its value with a partner
// at twice the distance: log n rounds of n messages each.
func allreduceDoubling(a *Call, k int, x *Exchange) bool {
	return a.inPairs(k, x, func(a *Call, p pairing, round int, x *Exchange) bool {
		if round > 0 {
			a.combine(p.peer(round-1), x)
		}
		if round == p.rounds {
			return false
		}
		x.Send(p.peer(round), a.value)
		x.Recv(p.peer(round), a.tmp)
		return true
	})
}

// rabenseifner is Rabenseifner's Allreduce. First each rank exchanges half of its value with a
// partner, at distance 1, 2, 4, …, and combines the other half, which is its value in the next
// round. So neighbouring groups are combined, in the order of ranks. Then ranks exchange results
// with the same partners in reverse order, and the part that each has doubles. A rank sends
// 2(n-1)/n of the value.
func rabenseifner(a *Call, k int, x *Exchange) bool {
	return a.inPairs(k, x, func(a *Call, p pairing, round int, x *Exchange) bool {
		if round == 0 {
			a.parts = even(len(a.value), a.Element, 1<<p.rounds)
			a.first, a.last = 0, 1<<p.rounds
		} else if round <= p.rounds {
			a.combineSpan(p.peer(round-1), x, a.parts[a.first], a.parts[a.last])
		}
		switch {
		case round < p.rounds:
			a.halve(x, p, round)
		case round < 2*p.rounds:
			a.double(x, p, 2*p.rounds-1-round)
		default:
			return false
		}
		return true
	})
}

// halve keeps one half of the parts. It sends the partner the values of the other half, and
// receives the partner's values of its own half.
func (a *Call) halve(x *Exchange, p pairing, round int) {
	first, middle, last := a.first, (a.first+a.last)/2, a.last
	if p.isFirst(round) {
		a.last, first = middle, middle
	} else {
		a.first, last = middle, middle
	}
	x.Send(p.peer(round), a.parts.span(a.value, first, last))
	x.Recv(p.peer(round), a.parts.span(a.tmp, a.first, a.last))
}

// double exchanges this rank's results with those of the partner of a round.
func (a *Call) double(x *Exchange, p pairing, round int) {
	n := a.last - a.first
	x.Send(p.peer(round), a.parts.span(a.Recv, a.first, a.last))
	if p.isFirst(round) {
		x.Recv(p.peer(round), a.parts.span(a.Recv, a.last, a.last+n))
		a.last += n
	} else {
		x.Recv(p.peer(round), a.parts.span(a.Recv, a.first-n, a.first))
		a.first -= n
	}
}

// A pairing reduces the number of acting ranks to a power of two: the first ranks act in pairs.
// The even rank of a pair is idle, the odd one acts.
type pairing struct {
	rank   int
	rounds int // logarithm of the number of acting ranks
	pairs  int
}

// inPairs is an Allreduce whose rounds are those of the acting ranks. The odd rank of a pair begins
// with the values of both, and sends the result to the even one.
func (a *Call) inPairs(k int, x *Exchange, round func(a *Call, p pairing, round int, x *Exchange) bool) bool {
	rounds := bits.Len(uint(x.Size())) - 1
	p := pairing{x.Rank(), rounds, x.Size() - 1<<rounds}
	paired := p.rank < 2*p.pairs
	if k == 0 {
		a.begin(x, x.Size() > 1)
	}
	if paired && p.rank%2 == 0 {
		if k == 0 {
			x.Send(p.rank+1, a.value)
			return true
		}
		x.Recv(p.rank+1, a.Recv)
		return false
	}
	switch {
	case k == 0 && paired:
		x.Recv(p.rank-1, a.tmp)
		return true
	case k == 0:
		return true
	case k == 1 && paired:
		a.combine(p.rank-1, x)
	}
	if round(a, p, k-1, x) {
		return true
	}
	a.settle()
	if paired {
		x.Send(p.rank-1, a.value)
	}
	return false
}

// number returns an acting rank's number among the acting ranks.
func (p pairing) number() int { return p.rank - min(p.pairs, (p.rank+1)/2) }

// peer returns the rank's partner in a round: their numbers differ in one bit.
func (p pairing) peer(round int) int {
	peer := p.number() ^ 1<<round
	if peer < p.pairs {
		return 2*peer + 1
	}
	return peer + p.pairs
}

// isFirst says whether the rank is the one of the two partners of a round that has the lower
// number.
func (p pairing) isFirst(round int) bool { return p.number()>>round&1 == 0 }
