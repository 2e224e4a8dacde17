package collective

import (
	"encoding/binary"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/binomial"
)

// ScatterAny is Scatter for parts whose lengths only the root knows. It sets Part to this
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

// joinParts is the inverse of SplitParts.
func joinParts(parts [][]byte) (all []byte) {
	for _, p := range parts {
		all = append(binary.AppendUvarint(all, uint64(len(p))), p...)
	}
	return all
}
