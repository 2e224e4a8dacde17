package collective

// ReduceChain is Reduce along a chain of ranks that ends at Root: each rank combines one
// segment and passes it on while it receives the next. If Root is not 0, the op must commute:
// the values are combined in the order Root, Root+1, …, n-1, 0, …, Root-1.
type ReduceChain struct {
	Reduction
	Root    int
	Segment int // bytes, whole elements
}

func (a *ReduceChain) Step(k int, x *Exchange) bool {
	t, n := tree{a.Root}, x.Size()
	v := t.number(x)
	if k == 0 {
		a.beginSegments(x, v < n-1, a.Segment)
	}
	segments := segments(len(a.value), a.Segment)
	passed := k // the segment that is passed on in this step
	if v < n-1 {
		passed--
		if 0 <= passed && passed < segments {
			to := segment(a.Acc, passed, a.Segment)
			a.Op(to, segment(a.value, passed, a.Segment), a.tmp[:len(to)])
		}
		if k < segments {
			x.Recv(t.rank(v+1, x), a.tmp[:len(segment(a.value, k, a.Segment))])
		}
	}
	if v > 0 && 0 <= passed && passed < segments {
		from := a.Acc
		if v == n-1 {
			from = a.value
		}
		x.Send(t.rank(v-1, x), segment(from, passed, a.Segment))
	}
	if k <= segments {
		return true
	}
	if n == 1 {
		a.settle()
	}
	return false
}
