package transporttest

import (
	"errors"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

var subs = []test{
	{"ADuplicateKeepsItsMessagesApart", 1, duplicatesIsolate},
	{"MembersAreRankedAsListed", 1, subsetsRenumber},
	{"OneCallMakesSeveralParts", 1, subsOfColors},
	{"AMemberMayStartBeforeTheOthers", 2, subBeforeOthers},
	{"AMemberThatDoesNotComeKeepsNobodyWaiting", 3, subWithoutOne},
	{"ClosingOneLeavesTheOthers", 1, closeOne},
	{"ANewCommunicatorBeginsInTheEpochOfItsName", 1, subAfterAdvance},
	{"ACommunicatorCanBeMadeAgainAfterAnError", 2, subAcrossAdvance},
	{"AnErrorDoesNotPartThoseWhoMadeOne", 2, subBeforeAdvance},
	{"EachCommunicatorHasItsOwnEpoch", 1, subEpochsAreApart},
}

// ring sends a message round and checks it, which shows that the communicator works.
func (s *side) ring(tag int, of ...int) {
	s.Helper()
	for _, size := range []int{small, large} {
		recv := s.recv(s.previous(), tag, make([]byte, size))
		send := s.send(s.next(), tag, payload(size, append(of, s.Rank())...))
		recv.got(s.previous(), tag, payload(size, append(of, s.previous())...))
		send.ok()
	}
}

func duplicatesIsolate(s *side) {
	comms := []*side{s, s.dup(1), s.dup(2)}
	for _, c := range comms {
		require.Equal(s, s.Rank(), c.Rank())
		require.Equal(s, s.Size(), c.Size())
		require.Equal(s, s.Features(), c.Features())
	}
	for _, w := range ways([]int{small, large}) {
		var sent, received []*op
		w.inOrder(s, func() {
			for i, c := range comms {
				sent = append(sent, c.send(s.next(), 1, payload(w.size, s.Rank(), i)))
			}
		}, func() {
			for i := range comms {
				c := comms[len(comms)-1-i]
				received = append(received, c.recv(transport.AnySource, transport.AnyTag, make([]byte, w.size)))
			}
		})
		for i, o := range received {
			o.got(s.previous(), 1, payload(w.size, s.previous(), len(comms)-1-i))
		}
		allOK(sent)
	}
	// A message that waits in one communicator is not found in another.
	probe := comms[1].probe(transport.AnySource, transport.AnyTag)
	s.barrier()
	s.send(s.next(), 1, nil).ok()
	s.recv(s.previous(), 1, nil).ok()
	comms[2].ring(1)
	probe.pending()
	probe.cancelled()
}

func subsetsRenumber(s *side) {
	n := s.Size()
	var all []int
	for r := range n {
		all = append(all, r)
	}
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	for i, members := range [][]int{
		all,
		reversed,
		append(all[n/2:n:n], all[:n/2]...),
		all[:(n+1)/2],
		{n - 1},
		[]int{n - 1, 0}[:min(n, 2)],
	} {
		rank := slices.Index(members, s.Rank())
		if rank < 0 {
			continue
		}
		c := s.sub(transport.Name{Epoch: s.Epoch(), Seq: uint64(i)}, members)
		require.Equal(s, rank, c.Rank(), "rank of the member at index %d of %v", rank, members)
		require.Equal(s, len(members), c.Size())
		for i, r := range members {
			require.Equal(s, s.Machine(r), c.Machine(i))
		}
		c.ring(1, i)
		recv := c.recv(transport.AnySource, 1, make([]byte, small))
		c.send(c.next(), 1, payload(small, s.Rank())).ok()
		recv.got(c.previous(), 1, payload(small, members[c.previous()]))
	}
}

// subsOfColors makes two communicators by each call, as a split does: of the ranks with even
// numbers, and of those with odd numbers.
func subsOfColors(s *side) {
	color := s.Rank() % 2
	var members []int
	for r := color; r < s.Size(); r += 2 {
		members = append(members, r)
	}
	for seq := range uint64(3) {
		c := s.sub(transport.Name{Epoch: s.Epoch(), Seq: seq, Color: color}, members)
		require.Equal(s, s.Rank()/2, c.Rank())
		require.Equal(s, len(members), c.Size())
		c.ring(1, color, int(seq))
		c.barrier()
	}
}

// subBeforeOthers lets each rank be the first to make a communicator, and send on it before any
// other rank makes it.
func subBeforeOthers(s *side) {
	for first := range s.Size() {
		name := transport.Name{Epoch: s.Epoch(), Seq: uint64(first)}
		var c *side
		if s.Rank() == first {
			c = s.sub(name, nil)
			for to := range s.Size() {
				c.send(to, 1, payload(large, to))
				c.send(to, 1, payload(small, to))
			}
		}
		s.barrier()
		if s.Rank() != first {
			c = s.sub(name, nil)
		}
		c.recv(first, 1, make([]byte, large)).got(first, 1, payload(large, s.Rank()))
		c.recv(first, 1, make([]byte, large)).got(first, 1, payload(small, s.Rank()))
	}
}

func subWithoutOne(s *side) {
	for absent := range s.Size() {
		if s.Rank() != absent {
			c := s.sub(transport.Name{Epoch: s.Epoch(), Seq: uint64(absent)}, nil)
			for to := range s.Size() {
				if to != absent {
					c.send(to, 1, payload(small, s.Rank(), to)).ok()
				}
			}
			for from := range s.Size() {
				if from != absent {
					c.recv(from, 1, make([]byte, small)).got(from, 1, payload(small, from, s.Rank()))
				}
			}
		}
		s.barrier()
	}
}

func closeOne(s *side) {
	first, second := s.dup(1), s.dup(2)
	grandchild := first.dup(3)
	first.ring(1)
	first.barrier()
	first.close()
	second.ring(1)
	grandchild.ring(1)
	s.ring(1)
	second.close()
	third := s.dup(4)
	third.ring(1)
	grandchild.ring(1)
}

func subAfterAdvance(s *side) {
	for round := range 3 {
		c := s.dup(1) // the same number in each epoch
		require.Equal(s, s.Epoch(), c.Epoch())
		c.ring(1, round)
		grandchild := c.sub(transport.Name{Epoch: c.Epoch(), Seq: 1}, nil)
		require.Equal(s, s.Epoch(), grandchild.Epoch())
		grandchild.ring(1, round)
		s.Advance(0, errors.New("an error"))
	}
}

// subAcrossAdvance has an error when only some ranks have made a communicator.
func subAcrossAdvance(s *side) {
	for round := range s.Size() {
		old := transport.Name{Epoch: s.Epoch(), Seq: 1}
		s.barrier()
		if s.Rank() <= round {
			s.sub(old, nil)
		}
		s.Advance(0, errors.New("an error"))
		c := s.dup(1)
		c.ring(1, round)
		c.barrier()
	}
}

// subBeforeAdvance lets one rank make a communicator and learn of an error before the others, which
// do not know of the error, make theirs.
func subBeforeAdvance(s *side) {
	ctl := s.aloof()
	for first := range s.Size() {
		name := transport.Name{Epoch: s.Epoch(), Seq: 1}
		var c *side
		if s.Rank() == first {
			c = s.sub(name, nil)
			s.Advance(0, errCause)
		}
		ctl.barrier()
		if s.Rank() != first {
			c = s.sub(name, nil)
			s.Advance(0, errCause)
		}
		require.Equal(s, name.Epoch, c.Epoch())
		c.Advance(0, errCause)
		c.ring(1, first)
		ctl.barrier()
	}
}

func subEpochsAreApart(s *side) {
	c := s.dup(1)
	c.barrier()
	before := c.Epoch()
	recv := c.recv(c.previous(), 1, make([]byte, small))
	s.Advance(0, errors.New("an error of the parent, which nobody tells the child"))
	require.Equal(s, before, c.Epoch())
	c.send(c.next(), 1, payload(small, s.Rank())).ok()
	recv.got(c.previous(), 1, payload(small, c.previous()))

	before = s.Epoch()
	recv = s.recv(s.previous(), 1, make([]byte, small))
	c.Advance(1, errors.New("an error of the child"))
	require.Equal(s, before, s.Epoch())
	s.send(s.next(), 1, payload(small, s.Rank())).ok()
	recv.got(s.previous(), 1, payload(small, s.previous()))
}
