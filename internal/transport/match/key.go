package match

import (
	"cmp"
	"slices"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Key is what a message and a receive are matched by. A receive's may have the
// wildcards AnySource and AnyTag.
type Key struct {
	Epoch       transport.Epoch
	Source, Tag int
}

// An Envelope is what a receive is told of a message.
type Envelope struct {
	Key
	Bytes     int // how long the message is
	Signature signature.Word
}

// Status is that of a request which gets the message.
func (e *Envelope) Status() transport.Status {
	return transport.Status{Source: e.Source, Tag: e.Tag, Bytes: e.Bytes, Signature: e.Signature}
}

// keyOf is the key of a receive or probe.
func keyOf(r *transport.Request) Key { return Key{r.Epoch, r.Peer, r.Tag} }

// takes says whether a receive or probe is for the message m. The most likely difference
// comes first.
func takes(r *transport.Request, m *Key) bool {
	return (r.Tag == m.Tag || r.Tag == transport.AnyTag && m.Tag >= 0) &&
		(r.Peer == m.Source || r.Peer == transport.AnySource) && r.Epoch == m.Epoch
}

// Most queues are short, and most of what is looked for is at the front. So only who has
// looked at a few elements in vain makes an index, and it is dropped once the queue is
// half as long.
const few = 128

// index has the elements of a queue by their keys, oldest first.
type index[T any] map[Key][]entry[T]

// An entry is an element with its number: they are counted as they come.
type entry[T any] struct {
	number uint64
	of     *T
}

func (x index[T]) add(k Key, number uint64, of *T) { x[k] = append(x[k], entry[T]{number, of}) }

// remove removes the element with a number, which mostly is the first of its key.
func (x index[T]) remove(k Key, number uint64) {
	list := x[k]
	i := 0
	if list[0].number != number {
		i, _ = slices.BinarySearchFunc(list, number, func(e entry[T], n uint64) int { return cmp.Compare(e.number, n) })
	}
	switch {
	case len(list) == 1:
		delete(x, k)
	case i == 0:
		list[0].of = nil
		x[k] = list[1:]
	default:
		x[k] = slices.Delete(list, i, i+1)
	}
}

// first returns the oldest element with this very key; none has number 0.
func (x index[T]) first(k Key) entry[T] {
	if list := x[k]; len(list) > 0 {
		return list[0]
	}
	return entry[T]{}
}
