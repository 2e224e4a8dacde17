package mpicx

import (
	"sync/atomic"
)

// slab hands out values of T from chunks, so most operations need no allocation. A chunk is freed
// when none of its values is in use.
type slab[T any] struct {
	chunk atomic.Pointer[chunk[T]]
}

type chunk[T any] struct {
	used   atomic.Int32
	values []T
}

// slabChunk is large enough to make allocations rare, and small enough for a hundred thousand ranks
// with a chunk each.
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
