package transporttest

import (
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Design rule D1: an error on a communicator advances the epochs of those derived from it, and
// ranks may learn of errors of parent and child in different orders.
var generations = []test{
	{"MessagesSentBetweenTwoErrorsAreReceivedBetweenThem", 1, receiveBetweenErrors},
	{"ManyGenerationsInAnyOrder", 1, manyGenerationsInAnyOrder},
	{"TwoOrdersOfErrorsAreTwoEpochsInAnyTwoGenerations", 2, dropBetweenAnyGenerations},
	{"MessagesFromManyErrorsAgoAreNeverReceived", 1, dropOldMessages},
	{"ThereIsNoSeventeenthGeneration", 1, refuseGeneration},
}

// derived returns the communicator of the given generation in a chain of duplicates.
func (s *side) derived(generation int) *side {
	s.Helper()
	for g := range generation {
		s = s.sub(transport.Name{Epoch: s.Epoch(), Seq: 1, Generation: g + 1}, nil)
	}
	return s
}

// receiveBetweenErrors tells all ranks of the errors in the same order, but one rank learns of each
// error before the others.
func receiveBetweenErrors(s *side) {
	ctl := s.aloof()
	c := s.derived(1)
	for first := range s.Size() {
		for _, generation := range []int{first % 2, 1 - first%2, 1, 0} {
			ctl.barrier()
			if s.Rank() == first {
				c.Advance(generation, errCause)
				c.send(c.next(), 1, payload(small, 1)).ok()
			}
			ctl.barrier()
			if s.Rank() != first {
				c.Advance(generation, errCause)
				c.send(c.next(), 1, payload(small, 1)).ok()
			}
			recv := c.recv(transport.AnySource, transport.AnyTag, make([]byte, small))
			recv.got(c.previous(), 1, payload(small, 1))
			c.ring(2, first)
		}
	}
}

// manyGenerationsInAnyOrder tells each rank of an error of each generation, in a different order at
// each rank.
func manyGenerationsInAnyOrder(s *side) {
	const n = transport.Generations
	ctl := s.aloof()
	seed := s.seed()
	c := s.derived(n - 1)
	for round := range 5 {
		before := c.Epoch()
		want := before
		for generation := range n {
			want = want.Next(generation)
		}
		var plain, ended []*op
		for step, generation := range random(seed, s.Rank(), round).Perm(n) {
			ended = append(ended, c.recv(c.previous(), step, nil), c.ssend(c.next(), n+step, payload(large, step)))
			plain = append(plain, c.send(c.next(), 2*n+step, payload(small, step)))
			c.Advance(generation, errCause)
		}
		for _, o := range ended {
			o.fails(errCause)
		}
		for _, o := range plain {
			o.nilOr(errCause)
		}
		require.Equal(s, want, c.Epoch())
		c.ring(1, round)
		ctl.barrier()
		c.barrier()
	}
}

// dropBetweenAnyGenerations is dropBetweenErrors for errors of each generation and the next one.
func dropBetweenAnyGenerations(s *side) {
	ctl := s.aloof()
	c := s.derived(transport.Generations - 1)
	for g := range transport.Generations - 1 {
		mine, others := g+s.Rank()%2, g+1-s.Rank()%2
		ctl.barrier()
		c.Advance(mine, errCause)
		sent := []*op{c.send(c.next(), 1, payload(small, 1)), c.send(c.previous(), 1, payload(large, 1))}
		recv := c.recv(transport.AnySource, transport.AnyTag, make([]byte, large))
		ctl.barrier()
		ctl.barrier()
		if s.Size()%2 == 0 { // else two neighbours have learned of the same error
			recv.pending()
		}
		ctl.barrier()
		c.Advance(others, errCause)
		if s.Size()%2 == 0 {
			recv.fails(errCause)
		}
		for _, o := range sent {
			o.nilOr(errCause)
		}
		c.barrier()
		c.ring(2, g)
	}
}

// dropOldMessages leaves messages unreceived and has hundreds of errors, of every generation,
// faster than some transports move messages.
func dropOldMessages(s *side) {
	ctl := s.aloof()
	c := s.derived(transport.Generations - 1)
	var sent []*op
	for _, size := range []int{small, large} {
		sent = append(sent, c.send(c.next(), 1, payload(size, 1)), c.ssend(c.next(), 1, payload(size, 1)))
	}
	ctl.barrier()
	for i := range 300 {
		generation := 0
		if i >= 256 {
			generation = i % transport.Generations
		}
		c.Advance(generation, errCause)
		if i&(i-1) == 0 || i == 255 {
			for _, o := range append(sent, c.recv(transport.AnySource, transport.AnyTag, make([]byte, large))) {
				if o.Kind == transport.Receiving {
					o.cancelled()
				} else {
					o.nilOr(errCause)
				}
			}
		}
	}
	recv := c.recv(transport.AnySource, transport.AnyTag, make([]byte, large))
	ctl.barrier()
	recv.pending()
	ctl.barrier()
	c.send(c.next(), 2, payload(1000, 1)).ok()
	recv.got(c.previous(), 2, payload(1000, 1))
}

// refuseGeneration makes a communicator of the highest generation, and then tries to make one of
// the next.
func refuseGeneration(s *side) {
	const last = transport.Generations - 1
	c := s.derived(last)
	recv := c.recv(c.previous(), 1, nil)
	before := c.Epoch()
	c.Advance(last, errCause)
	recv.fails(errCause)
	require.True(s, before.Stale(c.Epoch()))
	c.ring(2)
	for _, generation := range []int{last + 1, last + 2, -1} {
		_, err := c.Sub(transport.Name{Epoch: c.Epoch(), Seq: 1, Generation: generation}, nil)
		require.Equal(s, &transport.GenerationError{Generation: generation}, err)
	}
	c.dup(1).ring(3) // a communicator without errors of its own
	c.ring(4)
}
