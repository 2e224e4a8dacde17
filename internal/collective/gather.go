package collective

import (
	"encoding/binary"
	"errors"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/binomial"
)

// Gather collects the Send of all ranks, of equal length, in Recv of rank Root, in the order of
// ranks. Each subtree sends its parts in one message.
type Gather struct {
	Send, Recv []byte
	Root       int
	part       []byte // the subtree's parts, in tree order
}

func (a *Gather) Step(k int, x *Exchange) bool {
	t := tree{a.Root}
	v, n, b := t.number(x), x.Size(), len(a.Send)
	children := binomial.Children(v, n)
	switch {
	case k == 0:
		switch {
		case v == 0 && a.Root == 0:
			a.part = a.Recv
		case children == 0:
			a.part = a.Send
		default:
			a.part = x.Scratch(subtree(v, n) * b)
		}
		place(a.part, a.Send)
		for i := range children {
			child := binomial.Child(v, i)
			x.Recv(t.rank(child, x), a.part[(child-v)*b:][:subtree(child, n)*b])
		}
		return true
	case v > 0:
		x.Send(t.rank(binomial.Parent(v), x), a.part)
	case a.Root > 0: // from tree order to the order of ranks
		split := (n - a.Root) * b
		place(a.Recv[a.Root*b:], a.Send)
		copy(a.Recv[(a.Root+1)*b:], a.part[b:split])
		copy(a.Recv, a.part[split:])
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

// Scatter distributes the parts of Send at rank Root, of equal length, to Recv of all ranks, in
// the order of ranks.
type Scatter struct {
	Send, Recv []byte
	Root       int
	part       []byte
}

func (a *Scatter) Step(k int, x *Exchange) bool {
	t := tree{a.Root}
	v, n, b := t.number(x), x.Size(), len(a.Recv)
	if k == 0 {
		switch {
		case v > 0:
			a.part = x.Scratch(subtree(v, n) * b)
			x.Recv(t.rank(binomial.Parent(v), x), a.part)
		case a.Root == 0:
			a.part = a.Send
		default: // from the order of ranks to tree order
			a.part = x.Scratch(n * b)
			split := copy(a.part, a.Send[a.Root*b:])
			copy(a.part[split:], a.Send)
		}
		return true
	}
	if v == 0 {
		place(a.Recv, a.Send[a.Root*b:][:b])
	} else {
		copy(a.Recv, a.part)
	}
	for i := binomial.Children(v, n) - 1; i >= 0; i-- {
		child := binomial.Child(v, i)
		x.Send(t.rank(child, x), a.part[(child-v)*b:][:subtree(child, n)*b])
	}
	return false
}

// Linear exchanges parts directly: rank r's Send[i] goes to rank i, and rank i's part comes
// into r's Recv[i]. A nil slice stands for no part. A nil Send or Recv has no parts at all.
// Linear is for long parts and for parts of different lengths, because no rank passes on
// another's part.
type Linear struct {
	Send, Recv [][]byte
}

func (a *Linear) Step(k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	own := a.Send != nil && a.Recv != nil && len(a.Send[rank]) == len(a.Recv[rank])
	if own {
		x.Copy(a.Recv[rank], a.Send[rank])
	}
	for d := range n { // each rank starts with another peer
		if d == 0 && own {
			continue
		}
		if a.Recv != nil && a.Recv[(rank+n-d)%n] != nil {
			x.Recv((rank+n-d)%n, a.Recv[(rank+n-d)%n])
		}
	}
	for d := range n {
		if d == 0 && own {
			continue
		}
		if a.Send != nil && a.Send[(rank+d)%n] != nil {
			x.Send((rank+d)%n, a.Send[(rank+d)%n])
		}
	}
	return false
}

// Allgather is Gather to rank 0, then Bcast of the result.
type Allgather struct {
	Gather
	bcast Bcast
	then
}

func (a *Allgather) Step(k int, x *Exchange) bool {
	a.bcast.Buf = a.Recv
	return a.step(k, x, &a.Gather, &a.bcast)
}

// AllgatherShared is Allgather with a read-only result, All, which the ranks of one process
// share.
type AllgatherShared struct {
	Send, All []byte

	gather Gather
	bcast  BcastAny
	then
}

func (a *AllgatherShared) Step(k int, x *Exchange) bool {
	n := x.Size() * len(a.Send)
	if k == 0 {
		a.gather.Send = a.Send
		if x.Rank() == 0 {
			a.gather.Recv = make([]byte, n)
		}
	}
	a.bcast.Buf = a.gather.Recv
	more := a.step(k, x, &a.gather, &a.bcast)
	if got := len(a.bcast.Buf); !more && got != n {
		panic(future.Thrown{Err: &LengthError{binomial.Parent(x.Rank()), got, n}})
	}
	a.All = a.bcast.Buf
	return more
}

// Allgatherv is Allgather for parts of different lengths, which every rank knows: rank r's part
// is Recv[At[r]:At[r+1]].
type Allgatherv struct {
	Send, Recv []byte
	At         []int
}

func (a *Allgatherv) Step(k int, x *Exchange) bool {
	v, n := x.Rank(), x.Size()
	part := func(r int) []byte { return a.Recv[a.At[r]:a.At[r+subtree(r, n)]] }
	switch k {
	case 0:
		place(a.Recv[a.At[v]:a.At[v+1]], a.Send)
		for i := range binomial.Children(v, n) {
			child := binomial.Child(v, i)
			x.Recv(child, part(child))
		}
	case 1:
		if v > 0 {
			x.Send(binomial.Parent(v), part(v))
		}
	default:
		return (&Bcast{Buf: a.Recv}).Step(k-2, x)
	}
	return true
}

// GatherAny is Gather for parts whose lengths are known only to the ranks that send them. At
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
	a.all = append(binary.AppendUvarint(nil, uint64(len(a.Send))), a.Send...)
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

// AllgatherAny is GatherAny, then BcastAny of the result.
type AllgatherAny struct {
	GatherAny
	bcast BcastAny
	then
}

func (a *AllgatherAny) Step(k int, x *Exchange) bool {
	a.bcast.Buf = a.all
	more := a.step(k, x, &a.GatherAny, &a.bcast)
	if !more && x.Rank() > 0 {
		parts, err := SplitParts(a.bcast.Buf, x.Size())
		if err != nil {
			panic(future.Thrown{Err: err})
		}
		a.Parts = parts
	}
	return more
}

// ErrParts says that bytes received from another rank are not one part of each rank.
var ErrParts = errors.New("the parts gathered are not one of each rank")

// SplitParts returns the n parts in all. Each follows its length, a varint.
func SplitParts(all []byte, n int) ([][]byte, error) {
	if n > len(all) {
		return nil, ErrParts
	}
	parts := make([][]byte, n)
	for i := range parts {
		length, w := binary.Uvarint(all)
		if w <= 0 || length > uint64(len(all)-w) {
			return nil, ErrParts
		}
		parts[i] = all[w:][:length:length]
		all = all[w:][length:]
	}
	if len(all) > 0 {
		return nil, ErrParts
	}
	return parts, nil
}
