package match

import (
	"cmp"
	"iter"
	"slices"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A queue has elements in the order in which they came. It is linked through the elements, so to
// keep one allocates nothing, and one anywhere in the queue is removed without a search. An element
// can be in one queue at a time, so its links are free for other lists only after remove.
type queue[E any, P linked[E]] struct {
	first, last P
	length      int
	number      uint64
	index       index[E] // of all; nil: there is none
}

type linked[E any] interface {
	*E
	In() *transport.Links[E]
}

// Len returns the number of elements.
func (q *queue[E, P]) Len() int { return q.length }

// push appends an element with this key, and with links l.
func (q *queue[E, P]) push(k Key, e P, l *transport.Links[E]) {
	l.Next, l.Prev = nil, q.last
	if q.last == nil {
		q.first = e
	} else {
		q.last.In().Next = e
	}
	q.last = e
	q.length++
	// Numbers only grow. They give the index the order in which elements came, across all keys
	// (F5), and tell that an element is in a queue.
	q.number++
	l.Number = q.number
	if q.index != nil {
		q.index.add(k, l.Number, e)
	}
}

// remove removes the element with this key and with links l, which is in the queue.
func (q *queue[E, P]) remove(k Key, l *transport.Links[E]) {
	if q.index != nil {
		q.index.remove(k, l.Number)
	}
	if l.Prev == nil {
		q.first = l.Next
	} else {
		P(l.Prev).In().Next = l.Next
	}
	if l.Next == nil {
		q.last = l.Prev
	} else {
		P(l.Next).In().Prev = l.Prev
	}
	l.Next, l.Prev, l.Number = nil, nil, 0
	// Half as long, so a queue whose length is about few does not make and drop an index again and
	// again.
	if q.length--; q.length <= few/2 {
		q.index = nil
	}
}

// All yields the elements, oldest first. Elements that it has yielded may be removed.
func (q *queue[E, P]) All() iter.Seq[*E] {
	return func(yield func(*E) bool) {
		// Next is read before e is given away, because remove clears the links of e.
		for e := q.first; e != nil; {
			next := e.In().Next
			if !yield(e) {
				return
			}
			e = next
		}
	}
}

// indexed returns the index, which it makes if there is none. That takes as long as a look at all
// elements, but only the first time: push and remove keep the index up to date.
func (q *queue[E, P]) indexed(key func(*E) Key) index[E] {
	if q.index == nil {
		q.index = make(index[E])
		for e := range q.All() { // in their order, as add requires
			q.index.add(key(e), P(e).In().Number, e)
		}
	}
	return q.index
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
