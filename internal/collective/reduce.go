package collective

import "github.com/mpicx/go-mpicx/internal/binomial"

// reduceTree combines the values of all ranks in Recv of the root, along a binomial tree. If Op
// does not commute, the tree's root is rank 0, to keep the order of ranks. A rank receives the
// values of its children one after another, into the same buffer.
func reduceTree(a *Call, k int, x *Exchange) bool {
	var t tree
	if !a.Ordered {
		t.root = a.root
	}
	v := t.number(x)
	children := binomial.Children(v, x.Size())
	if k == 0 {
		a.begin(x, children > 0)
	} else if k <= children {
		a.combine(t.rank(binomial.Child(v, k-1), x), x)
	}
	switch {
	case k < children:
		x.Recv(t.rank(binomial.Child(v, k), x), a.tmp)
		return true
	case k > children: // at the root: the tree no longer uses Recv
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

// reduceStar is a reduction to rank 0, to which all others send directly. It combines the values in
// the order of ranks: n-1 messages, and rank 0 waits only once. It is for short values, and for
// ranks that share cores.
func reduceStar(a *Call, k int, x *Exchange) bool {
	n := x.Size()
	from := func(r int) []byte { return a.arrived[(r-1)*len(a.value):][:len(a.value)] }
	if k == 0 {
		a.begin(x, false)
		if x.Rank() > 0 {
			x.Send(0, a.value)
			return false
		}
		a.arrived = x.Scratch((n - 1) * len(a.value))
		for r := 1; r < n; r++ {
			x.Recv(r, from(r))
		}
		return true
	}
	for r := 1; r < n; r++ {
		a.Op(a.Recv, a.value, from(r))
		a.value = a.Recv
	}
	a.settle()
	return false
}
