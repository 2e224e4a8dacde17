package collective

import "math"

// beginScan prepares a scan. An exclusive one leaves the rank's own value out: its result is not
// what the rank combines in Recv.
func (a *Call) beginScan(x *Exchange, most int) {
	if a.exclusive {
		a.Recv, a.result = nil, a.Recv
	}
	a.beginSegments(x, x.Rank() > 0, most)
}

// scanDoubling sets the result of rank r to the combination of the values of ranks 0 to r or, if
// the scan is exclusive, to r-1; that of rank 0 is then unchanged. In step k a rank sends what it
// has combined to rank+2^k.
func scanDoubling(a *Call, k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	if k == 0 {
		a.beginScan(x, math.MaxInt)
	} else if from := rank - 1<<(k-1); from >= 0 {
		a.combine(from, x) // before the result changes, which may be Send
		switch {
		case !a.exclusive:
		case k == 1:
			copy(a.result, a.tmp)
		default:
			a.Op(a.result, a.tmp, a.result)
		}
	}
	distance := 1 << k
	if distance >= n {
		if !a.exclusive {
			a.settle()
		}
		return false
	}
	if rank+distance < n {
		x.Send(rank+distance, a.value)
	}
	if rank-distance >= 0 {
		x.Recv(rank-distance, a.tmp)
	}
	return true
}

// scanChain is a scan along the chain of ranks: each rank combines one segment with its own and
// passes it on while it receives the next. It sends the fewest messages, n-1 for each segment.
func scanChain(a *Call, k int, x *Exchange) bool {
	rank, last, each := x.Rank(), x.Rank() == x.Size()-1, a.segment()
	if k == 0 {
		a.beginScan(x, each)
	}
	segments := max(1, segments(len(a.value), each))
	passed := k - min(rank, 1) // the segment that is passed on in this step
	if 0 <= passed && passed < segments {
		own := segment(a.value, passed, each)
		before := a.tmp[:min(len(a.tmp), len(own))]
		if rank > 0 && !(a.exclusive && last) {
			sum := segment(a.Recv, passed, each)
			a.Op(sum, before, own)
			own = sum
		}
		if a.exclusive && rank > 0 { // after the segment has been read: the result may be Send
			copy(segment(a.result, passed, each), before)
		}
		if !last {
			x.Send(rank+1, own)
		}
	}
	if rank > 0 && k < segments {
		x.Recv(rank-1, a.tmp[:len(segment(a.value, k, each))])
	}
	if k < segments {
		return true
	}
	if rank == 0 && !a.exclusive {
		a.settle()
	}
	return false
}
