package collective

import "github.com/mpicx/go-mpicx/internal/binomial"

// tree is the binomial tree rooted at any rank: ranks are renumbered relative to the root.
type tree struct{ root int }

func (t tree) number(x *Exchange) int {
	v := x.Rank() - t.root
	if v < 0 {
		v += x.Size()
	}
	return v
}

func (t tree) rank(v int, x *Exchange) int {
	if v += t.root; v >= x.Size() {
		v -= x.Size()
	}
	return v
}

// A Barrier ends at no rank before all ranks have begun it. Empty messages go up the tree and
// then down.
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

// sendToChildren sends b down the tree, beginning with the largest subtree.
func sendToChildren(x *Exchange, t tree, v int, b []byte) {
	for i := binomial.Children(v, x.Size()) - 1; i >= 0; i-- {
		x.Send(t.rank(binomial.Child(v, i), x), b)
	}
}

// Bcast copies Buf of rank Root to Buf of all others.
type Bcast struct {
	Buf  []byte
	Root int
}

func (a *Bcast) Step(k int, x *Exchange) bool {
	t := tree{a.Root}
	v := t.number(x)
	if k == 0 {
		if v > 0 {
			x.Recv(t.rank(binomial.Parent(v), x), a.Buf)
		}
		return true
	}
	sendToChildren(x, t, v, a.Buf)
	return false
}

// BcastAny is Bcast for bytes whose length only the root knows. At the other ranks it sets Buf,
// which is read-only.
type BcastAny struct {
	Buf  []byte
	Root int
}

func (a *BcastAny) Step(k int, x *Exchange) bool {
	t := tree{a.Root}
	v := t.number(x)
	if k == 0 {
		if v > 0 {
			x.Take(t.rank(binomial.Parent(v), x))
		}
		return true
	}
	if v > 0 {
		a.Buf = x.Taken(0)
	}
	for i := binomial.Children(v, x.Size()) - 1; i >= 0; i-- {
		x.SendShared(t.rank(binomial.Child(v, i), x), a.Buf)
	}
	return false
}
