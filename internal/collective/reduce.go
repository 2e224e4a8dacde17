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
		for i := range a.each {
			a.tmp = a.place(i)
			a.combine(t.rank(binomial.Child(v, (k-1)*a.each+i), x), x)
		}
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

// reduceStar is a reduction to rank 0, to which all others send directly. It combines the values in
// the order of ranks: n-1 messages, and rank 0 waits only once. It is for short values, and for
// ranks that share cores.
func reduceStar(a *Call, k int, x *Exchange) bool {
	n := x.Size()
	if k == 0 {
		a.begin(x, false)
		if x.Rank() > 0 {
			x.Send(0, a.value)
			return false
		}
		a.arrived = x.Scratch((n - 1) * len(a.value))
		for r := 1; r < n; r++ {
			x.Recv(r, a.place(r-1))
		}
		return true
	}
	for r := 1; r < n; r++ {
		a.Op(a.Recv, a.value, a.place(r-1))
		a.value = a.Recv
	}
	a.settle()
	return false
}
