package collective

import "github.com/mpicx/go-mpicx/internal/binomial"

// tree is the binomial tree rooted at any rank: ranks are renumbered relative to the root.
type tree struct{ root int }

func (t tree) number(x *Exchange) int { return binomial.Around(x.Rank()-t.root, x.Size()) }

func (t tree) rank(v int, x *Exchange) int { return binomial.Around(v+t.root, x.Size()) }

// sendToChildren sends b down the tree, beginning with the largest subtree.
func sendToChildren(x *Exchange, t tree, v int, b []byte) {
	for i := binomial.Children(v, x.Size()) - 1; i >= 0; i-- {
		x.Send(t.rank(binomial.Child(v, i), x), b)
	}
}

// bcastTree copies Recv of the root to Recv of all others.
func bcastTree(a *Call, k int, x *Exchange) bool {
	t := tree{a.root}
	v := t.number(x)
	if k == 0 {
		if v > 0 {
			x.Recv(t.rank(binomial.Parent(v), x), a.Recv)
		}
		return true
	}
	sendToChildren(x, t, v, a.Recv)
	return false
}

// bcastChain is a broadcast along a chain of ranks that begins at the root: each rank passes on one
// segment while it receives the next.
func bcastChain(a *Call, k int, x *Exchange) bool {
	n, each := x.Size(), a.segment()
	t := tree{a.root}
	v := t.number(x)
	segments := segments(len(a.Recv), each)
	if v > 0 && k < segments {
		x.Recv(t.rank(v-1, x), segment(a.Recv, k, each))
	}
	if sent := k - min(v, 1); v < n-1 && 0 <= sent && sent < segments {
		x.Send(t.rank(v+1, x), segment(a.Recv, sent, each))
	}
	return k <= segments
}

// BcastAny is a broadcast of bytes whose length only the root knows. At the other ranks it sets
// Buf, which is read-only.
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
