package collective

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/binomial"
)

// scatterDirect distributes the parts of Send at the root to Recv of all ranks, in the order of
// ranks. The root sends to all others directly.
func scatterDirect(a *Call, _ int, x *Exchange) bool {
	if x.Rank() != a.root {
		x.Recv(a.root, a.Recv)
		return false
	}
	part := func(r int) []byte { return a.span(a.Send, len(a.Recv), r, r+1) }
	for d := 1; d < x.Size(); d++ {
		to := binomial.Around(a.root+d, x.Size())
		x.Send(to, part(to))
	}
	place(a.Recv, part(a.root))
	return false
}

// ScatterAny is a scatter of parts whose lengths only the root knows. It sets Part to this
// rank's part, which is read-only.
type ScatterAny struct {
	Parts [][]byte // of all ranks, in order; used only at the root
	Root  int
	Part  []byte
}

func (a *ScatterAny) Step(k int, x *Exchange) bool {
	t := tree{a.Root}
	v, n := t.number(x), x.Size()
	if k == 0 {
		if v > 0 {
			x.Take(t.rank(binomial.Parent(v), x))
		}
		return true
	}
	parts := a.Parts // of the subtree, in tree order
	if v > 0 {
		var err error
		if parts, err = SplitParts(x.Taken(0), subtree(v, n)); err != nil {
			panic(future.Thrown{Err: err}) // ends the operation with err
		}
	} else if a.Root > 0 {
		parts = append(append(make([][]byte, 0, n), parts[a.Root:]...), parts[:a.Root]...)
	}
	a.Part = parts[0]
	for i := binomial.Children(v, n) - 1; i >= 0; i-- {
		child := binomial.Child(v, i)
		x.SendShared(t.rank(child, x), joinParts(parts[child-v:][:subtree(child, n)]))
	}
	return false
}
