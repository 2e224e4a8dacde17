package collective

import "github.com/mpicx/go-mpicx/internal/binomial"

// A Barrier ends at no rank before all ranks have begun it. Empty messages go up the tree and
// then down. It is the only algorithm without a Call, because it has no state.
type Barrier struct{}

func (Barrier) Step(k int, x *Exchange) bool {
	v := x.Rank()
	switch k {
	case 0:
		for i := range binomial.Children(v, x.Size()) {
			x.Recv(binomial.Child(v, i), nil)
		}
	case 1:
		if v > 0 {
			x.Send(binomial.Parent(v), nil)
			x.Recv(binomial.Parent(v), nil)
		}
	default:
		sendToChildren(x, tree{}, v, nil)
		return false
	}
	return true
}

func barrierTree(_ *Call, k int, x *Exchange) bool { return Barrier{}.Step(k, x) }

// barrierDoubling is allreduceDoubling of no bytes.
func barrierDoubling(a *Call, k int, x *Exchange) bool {
	a.Op = func(_, _, _ []byte) {}
	return allreduceDoubling(a, k, x)
}
