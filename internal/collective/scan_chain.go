package collective

// ScanChain is Scan along the chain of ranks: each rank combines one segment with its own and
// passes it on while it receives the next. It sends the fewest messages, n-1 for each segment.
type ScanChain struct {
	Reduction
	Exclusive bool
	Result    []byte // used with Exclusive only
	Segment   int    // bytes, whole elements
}

func (a *ScanChain) Step(k int, x *Exchange) bool {
	rank, last := x.Rank(), x.Rank() == x.Size()-1
	if k == 0 {
		a.beginSegments(x, rank > 0, a.Segment)
	}
	segments := max(1, segments(len(a.value), a.Segment))
	passed := k - min(rank, 1) // the segment that is passed on in this step
	if 0 <= passed && passed < segments {
		own := segment(a.value, passed, a.Segment)
		before := a.tmp[:min(len(a.tmp), len(own))]
		if rank > 0 && !(a.Exclusive && last) {
			sum := segment(a.Acc, passed, a.Segment)
			a.Op(sum, before, own)
			own = sum
		}
		if a.Exclusive && rank > 0 { // after the segment has been read: Result may be Send
			copy(segment(a.Result, passed, a.Segment), before)
		}
		if !last {
			x.Send(rank+1, own)
		}
	}
	if rank > 0 && k < segments {
		x.Recv(rank-1, a.tmp[:len(segment(a.value, k, a.Segment))])
	}
	if k < segments {
		return true
	}
	if rank == 0 && !a.Exclusive {
		a.settle()
	}
	return false
}
