package collective

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/binomial"
)

// allgatherTree gives all ranks the parts of all, along the tree of rank 0: each subtree sends its
// parts up in one message, into their places in Recv, and then Recv goes down by bcastTree.
func allgatherTree(a *Call, k int, x *Exchange) bool {
	v, n := x.Rank(), x.Size()
	part := func(first, last int) []byte { return a.span(a.Recv, len(a.Send), first, last) }
	switch k {
	case 0:
		place(part(v, v+1), a.Send)
		for i := range binomial.Children(v, n) {
			child := binomial.Child(v, i)
			x.Recv(child, part(child, child+subtree(child, n)))
		}
	case 1:
		if v > 0 {
			x.Send(binomial.Parent(v), part(v, v+subtree(v, n)))
		}
	default:
		return bcastTree(a, k-2, x)
	}
	return true
}

// allgatherDirect gives all ranks the parts of all. Each rank sends its part to all others at
// once: one step. It sends Send, not the copy in Recv: processes read long messages in the sender's
// memory, and what others have read takes long to be written again.
func allgatherDirect(a *Call, _ int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	of := func(r int) []byte { return a.span(a.Recv, len(a.Send), r, r+1) }
	x.Copy(of(rank), a.Send)
	for d := 1; d < n; d++ {
		from := around(rank, -d, n)
		x.Recv(from, of(from))
	}
	for d := 1; d < n; d++ {
		x.Send(around(rank, d, n), a.Send)
	}
	return false
}

// AllgatherShared is an Allgather with a read-only result, All, which the ranks of one process
// share.
type AllgatherShared struct {
	Send, All []byte

	gather Call
	bcast  BcastAny
}

func (a *AllgatherShared) Step(k int, x *Exchange) bool {
	n := x.Size() * len(a.Send)
	if k == 0 {
		a.gather.Send = a.Send
		a.gather.keepState()
		if x.Rank() == 0 {
			a.gather.Recv = make([]byte, n)
		}
	}
	if k < gatherSteps {
		gatherTree(&a.gather, k, x)
		return true
	}
	a.bcast.Buf = a.gather.Recv
	more := a.bcast.Step(k-gatherSteps, x)
	if got := len(a.bcast.Buf); !more && got != n {
		panic(future.Thrown{Err: &LengthError{binomial.Parent(x.Rank()), got, n}})
	}
	a.All = a.bcast.Buf
	return more
}

// AllgatherAny is GatherAny, then BcastAny of the result.
type AllgatherAny struct {
	GatherAny
	bcast BcastAny
}

func (a *AllgatherAny) Step(k int, x *Exchange) bool {
	if k < gatherSteps {
		a.GatherAny.Step(k, x)
		return true
	}
	a.bcast.Buf = a.all
	more := a.bcast.Step(k-gatherSteps, x)
	if !more && x.Rank() > 0 {
		parts, err := SplitParts(a.bcast.Buf, x.Size())
		if err != nil {
			panic(future.Thrown{Err: err})
		}
		a.Parts = parts
	}
	return more
}
