package collective

import "github.com/mpicx/go-mpicx/internal/binomial"

// Reduce combines the values of all ranks in the Acc of rank Root, along a binomial tree. If Op does
// not commute, the tree's root is rank 0, to keep the order of ranks. A rank receives the values of its children
// all at once if they are short. It receives long ones one after another, into the same buffer.
type Reduce struct {
	Reduction
	Root int

	each int    // number of children whose values arrive in one step
	all  []byte // their values
}

// shortReduce is the length in bytes up to which a value is short.
const shortReduce = 4 << 10

func (a *Reduce) Step(k int, x *Exchange) bool {
	var t tree
	if !a.Ordered {
		t.root = a.Root
	}
	v := t.number(x)
	children := binomial.Children(v, x.Size())
	if k == 0 {
		a.begin(x, children > 0)
		a.each, a.all = 1, a.tmp
		if len(a.value) <= shortReduce && children > 1 {
			a.each, a.all = children, x.Scratch(children*len(a.value))
		}
	}
	steps := children / a.each
	if 0 < k && k <= steps {
		for i := range a.each {
			a.tmp = a.arrived(i)
			a.combine(t.rank(binomial.Child(v, (k-1)*a.each+i), x), x)
		}
	}
	switch {
	case k < steps:
		for i := range a.each {
			x.Recv(t.rank(binomial.Child(v, k*a.each+i), x), a.arrived(i))
		}
		return true
	case k > steps: // at Root: the tree no longer uses Acc
		x.Recv(0, a.Acc)
		return false
	case v > 0:
		x.Send(t.rank(binomial.Parent(v), x), a.value)
		return x.Rank() == a.Root
	case t.root != a.Root:
		x.Send(a.Root, a.value)
	default:
		a.settle()
	}
	return false
}

func (a *Reduce) arrived(i int) []byte { return a.all[i*len(a.value):][:len(a.value)] }
