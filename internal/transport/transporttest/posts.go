package transporttest

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

var posts = []test{
	{"PostsOfOneRankComeInOrder", 1, postInOrder},
	{"WhatWasPostedBeforeThereIsAListenerComes", 1, postEarly},
	{"AListenerMayPost", 1, postFromListener},
	{"PostsComeInEveryEpochAndAfterARevoke", 1, postAcrossAdvance},
	{"NothingIsPostedToOneThatHasClosed", 2, postToClosed},
}

// A listener checks that it takes one message at a time, and of each rank those
// with the numbers from 0 on.
type listener struct {
	*side
	taking atomic.Bool
	next   []uint64 // by rank
	wanted int
	all    chan struct{} // closed once as many as are wanted have come
	then   func(from int, number uint64)
}

// listen has the rank take as many posts as are wanted, which wait waits for.
func (s *side) listen(wanted int, then func(from int, number uint64)) *listener {
	l := &listener{side: s, next: make([]uint64, s.Size()), wanted: wanted, all: make(chan struct{}), then: then}
	s.Listen(l)
	return l
}

func (l *listener) Died(int) {}

func (l *listener) Take(from int, b []byte) {
	if l.taking.Swap(true) {
		l.Errorf("takes two messages at a time")
	}
	number := binary.LittleEndian.Uint64(b)
	if number != l.next[from] {
		l.Errorf("gets number %d from rank %d, expected %d", number, from, l.next[from])
	}
	l.next[from]++
	l.taking.Store(false)
	if l.then != nil {
		l.then(from, number)
	}
	if l.wanted--; l.wanted == 0 {
		close(l.all)
	}
}

func (l *listener) wait() {
	l.Helper()
	select {
	case <-l.all:
	case <-time.After(limit):
		l.FailNow()
	}
}

func (s *side) post(to int, number int) {
	s.Post(to, binary.LittleEndian.AppendUint64(nil, uint64(number)))
}

const postsEach = 100

func postInOrder(s *side) {
	c := s.dup(1)
	l := c.listen(postsEach*s.Size(), nil)
	for i := range postsEach {
		for r := range s.Size() {
			c.post(r, i)
		}
	}
	l.wait()
	s.barrier()
}

// Each posts before its neighbours listen, and goes on while they begin to.
func postEarly(s *side) {
	c := s.dup(1)
	for i := range postsEach {
		c.post(s.right(), i)
	}
	s.barrier()
	s.together(2, func(g int) {
		if g == 0 {
			c.listen(2*postsEach, nil).wait()
			return
		}
		for i := range postsEach {
			c.post(s.right(), postsEach+i)
		}
	})
	s.barrier()
}

// A message that goes round so often that listeners must not nest.
func postFromListener(s *side) {
	const rounds = 20_000
	c := s.dup(1)
	l := c.listen(rounds, func(from int, number uint64) {
		if s.Rank() == 0 {
			number++
		}
		if number < rounds {
			c.post(s.right(), int(number))
		}
	})
	s.barrier()
	if s.Rank() == 0 {
		c.post(s.right(), 0)
	}
	l.wait()
	s.barrier()
}

func postAcrossAdvance(s *side) {
	c := s.dup(1)
	c.post(s.right(), 0)
	s.barrier()
	c.Advance(0, transport.ErrCancelled)
	c.post(s.right(), 1)
	s.barrier()
	c.Revoke(transport.ErrCancelled)
	c.post(s.right(), 2)
	c.listen(3, nil).wait()
	s.barrier()
}

func postToClosed(s *side) {
	c := s.dup(1)
	l := c.listen(1, nil)
	c.post(s.right(), 0)
	l.wait()
	s.barrier()
	if s.Rank() == 0 {
		c.close()
	}
	s.barrier()
	if s.Rank() != 0 {
		c.post(0, 1)
	}
	s.barrier()
	if s.Rank() == 0 {
		require.EqualValues(s, 1, l.next[s.left()])
	}
}
