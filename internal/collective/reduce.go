package collective

import (
	"math/bits"

	"github.com/mpicx/go-mpicx/internal/binomial"
)

// An Op sets dst to left op right, element by element. Dst is one of the two. An Op is
// associative. It need not be commutative: operations apply it in the order of ranks,
// with the same brackets every time, so that floating-point results are the same at all
// ranks and in every run.
type Op func(dst, left, right []byte)

// Reduce combines the Acc of all ranks into the Acc of rank Root, and overwrites the
// Acc of the others. The tree's root is rank 0, to keep the order of ranks.
type Reduce struct {
	Acc, Tmp []byte // of the same length
	Op       Op
	Root     int
}

func (a *Reduce) Step(k int, x *Exchange) bool {
	rank := x.Rank()
	children := binomial.Children(rank, x.Size())
	if 0 < k && k <= children {
		a.Op(a.Acc, a.Acc, a.Tmp)
	}
	switch {
	case k < children:
		x.Recv(binomial.Child(rank, k), a.Tmp)
		return true
	case k > children: // at the root, once the tree is done with Acc
		x.Recv(0, a.Acc)
		return false
	case rank > 0:
		x.Send(binomial.Parent(rank), a.Acc)
		return rank == a.Root
	case a.Root > 0:
		x.Send(a.Root, a.Acc)
	}
	return false
}

// AllreduceTree is Reduce to rank 0, then Bcast: 2(n-1) messages.
type AllreduceTree struct {
	Reduce
	bcast Bcast
	then
}

func (a *AllreduceTree) Step(k int, x *Exchange) bool {
	a.bcast.Buf = a.Acc
	return a.step(k, x, &a.Reduce, &a.bcast)
}

// AllreduceDoubling is recursive doubling. In each step a rank exchanges its value with
// a partner at twice the distance: log n steps of n messages each. If n is no power of
// two, the first ranks act in pairs.
type AllreduceDoubling struct {
	Acc, Tmp []byte
	Op       Op

	partner int // of the step before, whose message is in Tmp; -1: none
	result  bool
}

func (a *AllreduceDoubling) Step(k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	core := 1 << (bits.Len(uint(n)) - 1) // the largest power of two in n
	pairs := n - core
	if k > 0 && a.partner >= 0 {
		switch {
		case a.result:
			copy(a.Acc, a.Tmp)
		case a.partner < rank:
			a.Op(a.Acc, a.Tmp, a.Acc)
		default:
			a.Op(a.Acc, a.Acc, a.Tmp)
		}
	}
	a.partner = -1
	if rank < 2*pairs && rank%2 == 0 { // only takes part through rank+1
		switch k {
		case 0:
			x.Send(rank+1, a.Acc)
			x.Recv(rank+1, a.Tmp)
			a.partner, a.result = rank+1, true
			return true
		default:
			return false
		}
	}
	if k == 0 {
		if rank < 2*pairs {
			x.Recv(rank-1, a.Tmp)
			a.partner = rank - 1
		}
		return true
	}
	if mask := 1 << (k - 1); mask < core {
		me := rank - min(pairs, (rank+1)/2)
		peer := me ^ mask
		a.partner = peer + min(pairs, peer)
		if peer < pairs {
			a.partner = 2*peer + 1
		}
		x.Send(a.partner, a.Acc)
		x.Recv(a.partner, a.Tmp)
		return true
	}
	if rank < 2*pairs {
		x.Send(rank-1, a.Acc)
	}
	return false
}

// Scan makes Acc of rank r the combination of those of ranks 0 to r, or, with
// Exclusive, to r-1: at rank 0 it is then left alone. In step k a rank passes
// what it has to rank+2^k.
type Scan struct {
	Acc, Tmp  []byte
	Op        Op
	Exclusive bool
	Result    []byte // of Exclusive
	have      bool
}

func (a *Scan) Step(k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	if k > 0 && rank-1<<(k-1) >= 0 {
		if a.Exclusive {
			if !a.have {
				a.have = true
				copy(a.Result, a.Tmp)
			} else {
				a.Op(a.Result, a.Tmp, a.Result)
			}
		}
		a.Op(a.Acc, a.Tmp, a.Acc)
	}
	distance := 1 << k
	if distance >= n {
		return false
	}
	if rank+distance < n {
		x.Send(rank+distance, a.Acc)
	}
	if rank-distance >= 0 {
		x.Recv(rank-distance, a.Tmp)
	}
	return true
}
