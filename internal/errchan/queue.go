package errchan

// A Queue holds the outputs of a backend's machine until they are carried out, in their order. The
// zero Queue is empty.
type Queue[T any] struct {
	first int // the items before it have been removed
	items []T
}

// Empty says whether there are no outputs.
func (q *Queue[T]) Empty() bool { return q.first == len(q.items) }

// Push adds an output.
func (q *Queue[T]) Push(o T) {
	if q.items == nil {
		q.items = make([]T, 0, 2) // most never have more
	}
	q.items = append(q.items, o)
}

// Pop removes the first output, and says whether there is one.
func (q *Queue[T]) Pop() (o T, ok bool) {
	if q.Empty() {
		q.first, q.items = 0, q.items[:0]
		return o, false
	}
	var none T
	o, q.items[q.first] = q.items[q.first], none
	q.first++
	return o, true
}
