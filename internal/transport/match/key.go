package match

import (
	"cmp"
	"slices"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Key is the part of a message or a receive that decides whether they match. The key of a receive
// may have the wildcards AnySource and AnyTag.
type Key struct {
	Epoch       transport.Epoch
	Source, Tag int
}

// An Envelope describes a message to its receive.
type Envelope struct {
	Key
	Bytes     int // length of the message
	Signature signature.Word
}

// Status returns the Status of a request that gets the message.
func (e *Envelope) Status() transport.Status {
	return transport.Status{Source: e.Source, Tag: e.Tag, Bytes: e.Bytes, Signature: e.Signature}
}

// keyOf returns the key of a receive or probe.
func keyOf(r *transport.Request) Key { return Key{r.Epoch, r.Peer, r.Tag} }

// takes says whether a receive or probe matches the message m. The most likely difference is
// compared first.
func takes(r *transport.Request, m *Key) bool {
	return (r.Tag == m.Tag || r.Tag == transport.AnyTag && m.Tag >= 0) &&
		(r.Peer == m.Source || r.Peer == transport.AnySource) && r.Epoch == m.Epoch
}

// Most queues are short, and most searches find an element at the front. An index is therefore made
// only by a search that has looked at few elements in vain. It is dropped when the queue is half as
// long.
const few = 128

// index has the elements of a queue by their keys, oldest first.
type index[T any] map[Key][]entry[T]

// An entry is an element with its number; elements are numbered in the order in which they come.
type entry[T any] struct {
	number uint64
	of     *T
}

// add adds an element that is newer than all others of its key. So each list is ascending, and
// remove can search it.
func (x index[T]) add(k Key, number uint64, of *T) { x[k] = append(x[k], entry[T]{number, of}) }

// remove removes the element with a number. It is usually the first of its key.
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
		// The element must not stay alive through the memory of the list, which is kept.
		list[0].of = nil
		x[k] = list[1:]
	default:
		x[k] = slices.Delete(list, i, i+1)
	}
}

// first returns the oldest element with exactly this key. If there is none, its number is 0.
func (x index[T]) first(k Key) entry[T] {
	if list := x[k]; len(list) > 0 {
		return list[0]
	}
	return entry[T]{}
}
