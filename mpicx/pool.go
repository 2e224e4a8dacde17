package mpicx

import (
	"sync"
	"sync/atomic"
)

// freeList keeps a few values of T that have served, for those to come.
type freeList[T any] struct {
	last atomic.Pointer[T] // mostly there is one: it takes no lock
	mu   sync.Mutex
	free []*T
}

const freeListMax = 32

func (l *freeList[T]) get() *T {
	if v := l.last.Swap(nil); v != nil {
		return v
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		v := l.free[n-1]
		l.free = l.free[:n-1]
		return v
	}
	return new(T)
}

func (l *freeList[T]) put(v *T) {
	if l.last.CompareAndSwap(nil, v) {
		return
	}
	l.mu.Lock()
	if len(l.free) < freeListMax {
		l.free = append(l.free, v)
	}
	l.mu.Unlock()
}

// slab hands out values of T from chunks, so that most operations cost no
// allocation. A chunk is freed once all its values are.
type slab[T any] struct {
	chunk atomic.Pointer[chunk[T]]
}

type chunk[T any] struct {
	used   atomic.Int32
	values []T
}

// slabChunk is large enough to make allocations rare, and small enough for a
// hundred thousand ranks to have one each.
const slabChunk = 16

func (s *slab[T]) get() *T {
	for {
		c := s.chunk.Load()
		size := 1
		if c != nil {
			if i := int(c.used.Add(1)) - 1; i < len(c.values) {
				return &c.values[i]
			}
			size = min(2*len(c.values), slabChunk)
		}
		s.chunk.CompareAndSwap(c, &chunk[T]{values: make([]T, size)})
	}
}
