package collective

import "github.com/mpicx/go-mpicx/internal/binomial"

// Reduce combines the values of all ranks into the Acc of rank Root, along a binomial
// tree. The tree's root is rank 0, to keep the order of ranks.
type Reduce struct {
	Reduction
	Root int
}

func (a *Reduce) Step(k int, x *Exchange) bool {
	rank := x.Rank()
	children := binomial.Children(rank, x.Size())
	switch {
	case k == 0:
		a.begin(x, children > 0)
	case k <= children:
		a.combine(binomial.Child(rank, k-1), x)
	}
	switch {
	case k < children:
		x.Recv(binomial.Child(rank, k), a.tmp)
		return true
	case k > children: // at the root, once the tree is done with Acc
		x.Recv(0, a.Acc)
		return false
	case rank > 0:
		x.Send(binomial.Parent(rank), a.value)
		return rank == a.Root
	case a.Root > 0:
		x.Send(a.Root, a.value)
	default:
		a.settle()
	}
	return false
}
