package collective

import (
	"errors"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/binomial"
	"github.com/mpicx/go-mpicx/internal/wire"
)

// gatherSteps is the number of steps of gatherTree and GatherAny.
const gatherSteps = 2

// gatherTree collects Send of all ranks, of equal length, in Recv of the root, in the order of
// ranks. Each subtree sends its parts in one message.
func gatherTree(a *Call, k int, x *Exchange) bool {
	t := tree{a.root}
	v, n, b := t.number(x), x.Size(), len(a.Send)
	children := binomial.Children(v, n)
	switch {
	case k == 0: // arrived has the subtree's parts, in tree order
		switch {
		case v == 0 && a.root == 0:
			a.arrived = a.Recv
		case children == 0:
			a.arrived = a.Send
		default:
			a.arrived = x.Scratch(subtree(v, n) * b)
		}
		place(a.arrived, a.Send)
		for i := range children {
			child := binomial.Child(v, i)
			x.Recv(t.rank(child, x), a.arrived[(child-v)*b:][:subtree(child, n)*b])
		}
		return true
	case v > 0:
		x.Send(t.rank(binomial.Parent(v), x), a.arrived)
	case a.root > 0: // from tree order to the order of ranks
		split := (n - a.root) * b
		place(a.Recv[a.root*b:], a.Send)
		copy(a.Recv[(a.root+1)*b:], a.arrived[b:split])
		copy(a.Recv, a.arrived[split:])
	}
	return false
}

// subtree returns how many ranks the subtree rooted at v has, including v.
func subtree(v, n int) int {
	if v == 0 {
		return n
	}
	return min(v&-v, n-v)
}

// gatherDirect is a gather in which all others send to the root directly.
func gatherDirect(a *Call, _ int, x *Exchange) bool {
	if x.Rank() != a.root {
		x.Send(a.root, a.Send)
		return false
	}
	n, b := x.Size(), len(a.Send)
	for d := 1; d < n; d++ {
		from := binomial.Around(a.root+d, n)
		x.Recv(from, a.Recv[from*b:][:b])
	}
	place(a.Recv[a.root*b:], a.Send)
	return false
}

// GatherAny is a gather of parts whose lengths are known only to the ranks that send them. At
// the root it sets Parts, which are read-only.
type GatherAny struct {
	Send  []byte
	Root  int
	Parts [][]byte

	all []byte // the subtree's parts in tree order, each after its length
}

func (a *GatherAny) Step(k int, x *Exchange) bool {
	t := tree{a.Root}
	v, n := t.number(x), x.Size()
	children := binomial.Children(v, n)
	if k == 0 {
		for i := range children {
			x.Take(t.rank(binomial.Child(v, i), x))
		}
		return true
	}
	a.all = wire.AppendBytes(nil, a.Send)
	for i := range children {
		a.all = append(a.all, x.Taken(i)...)
	}
	if v > 0 {
		x.SendShared(t.rank(binomial.Parent(v), x), a.all)
		return false
	}
	parts, err := SplitParts(a.all, n)
	if err != nil {
		panic(future.Thrown{Err: err}) // ends the operation with err
	}
	a.Parts = append(parts[n-a.Root:], parts[:n-a.Root]...)
	return false
}

// ErrParts says that bytes received from another rank are not one part of each rank.
var ErrParts = errors.New("the parts gathered are not one of each rank")

// SplitParts returns the n parts in all. Each follows its length, a varint.
func SplitParts(all []byte, n int) ([][]byte, error) {
	if n > len(all) {
		return nil, ErrParts
	}
	parts := make([][]byte, n)
	d := wire.NewReader(all)
	for i := range parts {
		parts[i] = d.Bytes()
	}
	if d.End() != nil {
		return nil, ErrParts
	}
	return parts, nil
}

// joinParts is the inverse of SplitParts.
func joinParts(parts [][]byte) (all []byte) {
	for _, p := range parts {
		all = wire.AppendBytes(all, p)
	}
	return all
}
