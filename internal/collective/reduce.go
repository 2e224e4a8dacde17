package collective

import "github.com/mpicx/go-mpicx/internal/binomial"

// shortReduce is the length in bytes up to which a value is short.
const shortReduce = 4 << 10

// reduceTree combines the values of all ranks in Recv of the root, along a binomial tree. If Op
// does not commute, the tree's root is rank 0, to keep the order of ranks. A rank receives the
// values of its children all at once if they are short. It receives long ones one after another,
// into the same buffer.
func reduceTree(a *Call, k int, x *Exchange) bool {
	var t tree
	if !a.Ordered {
		t.root = a.root
	}
	v := t.number(x)
	children := binomial.Children(v, x.Size())
	if k == 0 {
		a.begin(x, children > 0)
		a.each, a.arrived = 1, a.tmp
		if len(a.value) <= shortReduce && children > 1 {
			a.each, a.arrived = children, x.Scratch(children*len(a.value))
		}
	}
	steps := children / a.each
	if 0 < k && k <= steps {
		a.fold(a.arrived)
	}
	switch {
	case k < steps:
		for i := range a.each {
			x.Recv(t.rank(binomial.Child(v, k*a.each+i), x), a.place(i))
		}
		return true
	case k > steps: // at the root: the tree no longer uses Recv
		x.Recv(0, a.Recv)
		return false
	case v > 0:
		x.Send(t.rank(binomial.Parent(v), x), a.value)
		return x.Rank() == a.root
	case t.root != a.root:
		x.Send(a.root, a.value)
	default:
		a.settle()
	}
	return false
}

// place returns where the i-th value arrives.
func (a *Call) place(i int) []byte { return a.arrived[i*len(a.value):][:len(a.value)] }

// reduceStar is a reduction in which all others send to the root directly, and the root combines
// the values in the order of ranks: n-1 messages, and the root waits only once. It is for short
// values, and for ranks that share cores. The table uses it for roots other than 0 only with 2
// ranks; with more it is reduceTree there.
func reduceStar(a *Call, k int, x *Exchange) bool {
	n := x.Size()
	if n > 2 && a.root > 0 {
		return reduceTree(a, k, x)
	}
	if k == 0 {
		a.begin(x, false)
		if x.Rank() != a.root {
			x.Send(a.root, a.value)
			return false
		}
		a.arrived = x.Scratch((n - 1) * len(a.value))
		for d := 1; d < n; d++ {
			x.Recv(around(a.root, d, n), a.place(d-1))
		}
		return true
	}
	if a.root > 0 { // of 2 ranks
		a.Op(a.Recv, a.place(0), a.value)
		return false
	}
	a.fold(a.arrived)
	a.settle()
	return false
}

// reduceChain is a reduction along a chain of ranks that ends at the root: each rank combines one
// segment and passes it on while it receives the next. If the root is not 0, the op must commute:
// the values are combined in the order root, root+1, …, n-1, 0, …, root-1.
func reduceChain(a *Call, k int, x *Exchange) bool {
	if a.Ordered && a.root > 0 {
		return reduceTree(a, k, x)
	}
	t, n, each := tree{a.root}, x.Size(), a.segment()
	v := t.number(x)
	if k == 0 {
		a.beginSegments(x, v < n-1, each)
	}
	segments := segments(len(a.value), each)
	passed := k // the segment that is passed on in this step
	if v < n-1 {
		passed--
		if 0 <= passed && passed < segments {
			to := segment(a.Recv, passed, each)
			a.Op(to, segment(a.value, passed, each), a.tmp[:len(to)])
		}
		if k < segments {
			x.Recv(t.rank(v+1, x), a.tmp[:len(segment(a.value, k, each))])
		}
	}
	if v > 0 && 0 <= passed && passed < segments {
		from := a.Recv
		if v == n-1 {
			from = a.value
		}
		x.Send(t.rank(v-1, x), segment(from, passed, each))
	}
	if k <= segments {
		return true
	}
	if n == 1 {
		a.settle()
	}
	return false
}
