package sim

import "time"

// An event is the arrival of a message at a rank, or a function that runs there.
type event struct {
	rank  int32
	begun bool     // it has the CPU of its rank
	m     *message // nil: the event runs f
	f     func()
}

// An entry is an event with its place in time.
type entry struct {
	at  time.Duration
	tie uint64
	*event
}

func (a entry) before(b entry) bool { return a.at < b.at || a.at == b.at && a.tie < b.tie }

// An agenda contains all future events. About half of them are due exactly one overhead from now:
// they are added in the order of time, and need no heap.
type agenda struct {
	heap []entry // each before its four children: shallow, and four children share a cache line or two
	line []entry
	head int // of line
}

func (a *agenda) append(e entry) { a.line = append(a.line, e) }

func (a *agenda) push(e entry) {
	h := append(a.heap, e)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
	a.heap = h
}

// pop returns the first event.
func (a *agenda) pop() (e entry, ok bool) {
	switch {
	case a.head < len(a.line) && (len(a.heap) == 0 || a.line[a.head].before(a.heap[0])):
		e = a.line[a.head]
		a.line[a.head] = entry{}
		if a.head++; a.head > len(a.line)/2 {
			n := copy(a.line, a.line[a.head:])
			clear(a.line[n:])
			a.line, a.head = a.line[:n], 0
		}
		return e, true
	case len(a.heap) > 0:
		return a.popHeap(), true
	}
	return e, false
}

func (a *agenda) popHeap() entry {
	h := a.heap
	first, last, n := h[0], h[len(h)-1], len(h)-1
	h[n] = entry{}
	a.heap = h[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		for k := child + 1; k < min(4*i+5, n); k++ {
			if h[k].before(h[child]) {
				child = k
			}
		}
		if !h[child].before(last) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = last
	return first
}
