package transporttest

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

var mprobes = []test{
	{"AMprobeTakesTheMessage", 1, mprobeThenReceive},
	{"NobodyElseFindsWhatAMprobeHas", 1, mprobeExcludes},
	{"MprobesAndReceivesAreServedInTurn", 1, mprobeInTurn},
	{"AMprobedMessageIsTruncatedAsAnyOther", 1, mprobeTruncates},
	{"AMprobeThatWaitsCanBeCancelledAndOneThatHasItsMessageCannot", 1, mprobeCancel},
	{"AMprobedMessageThatIsCancelledCannotBeReceived", 1, mprobeCancelledSend},
	{"AMprobedMessageIsGoneAfterAnError", 1, mprobeAdvance},
	{"AMprobedMessageOfASenderInTheNextEpochWaitsForTheError", 2, mprobeSenderAdvances},
	{"AMprobedMessageNeedNotBeReceived", 1, mprobeForgotten},
	{"ManyMprobesEachTakeAMessage", 1, mprobeTogether},
	{"WhateverIsCancelledEachMessageIsReceivedOnceAndInOrder", 1, mprobeRandomly},
}

func (s *side) mprobe(from, tag int) *op {
	o := s.op(transport.Request{Peer: from, Tag: tag})
	s.Mprobe(&o.Request)
	return o
}

// mrecv receives the message that an ended Mprobe has taken.
func (o *op) mrecv(r transport.Request) *op {
	next := o.s.op(r)
	next.Epoch, next.Where = o.Epoch, o.Where
	o.s.Mrecv(&next.Request)
	return next
}

func mprobeThenReceive(s *side) {
	for _, p := range []struct{ from, tag int }{
		{s.previous(), 2}, {transport.AnySource, 2}, {s.previous(), transport.AnyTag}, {transport.AnySource, transport.AnyTag},
	} {
		for _, w := range ways([]int{0, small, 1000, large}, modes...) {
			send, probe := w.pair(s, w.mode, 2, payload(w.size, s.Rank()), func() *op { return s.mprobe(p.from, p.tag) })
			probe.found(s.previous(), 2, w.size)
			s.barrier()
			if w.mode != try && w.mode&transport.Synchronous != 0 {
				send.pending()
			}
			s.barrier()
			switch w.size {
			case small:
				alloc := func(n int) []byte { return make([]byte, n) }
				probe.mrecv(transport.Request{Alloc: alloc}).found(s.previous(), 2, w.size)
			case 1000:
				probe.mrecv(transport.Request{Take: true}).got(s.previous(), 2, payload(w.size, s.previous()))
			default:
				probe.mrecv(transport.Request{Buf: make([]byte, w.size)}).got(s.previous(), 2, payload(w.size, s.previous()))
			}
			send.ok()
		}
	}
}

func mprobeExcludes(s *side) {
	for _, w := range ways([]int{small, large}) {
		send, taken := w.pair(s, 0, 2, payload(w.size, 1), func() *op { return s.mprobe(s.previous(), 2) })
		taken.found(s.previous(), 2, w.size)
		others := []*op{
			s.probe(s.previous(), 2), s.recv(s.previous(), 2, make([]byte, w.size)), s.mprobe(transport.AnySource, transport.AnyTag),
		}
		s.barrier()
		for _, o := range others {
			o.pending()
		}
		s.barrier()
		second := []*op{s.send(s.next(), 2, payload(w.size, 2)), s.send(s.next(), 3, payload(w.size, 3))}
		others[0].found(s.previous(), 2, w.size)
		others[1].got(s.previous(), 2, payload(w.size, 2))
		others[2].found(s.previous(), 3, w.size)
		others[2].mrecv(transport.Request{Buf: make([]byte, w.size)}).got(s.previous(), 3, payload(w.size, 3))
		taken.mrecv(transport.Request{Buf: make([]byte, w.size)}).got(s.previous(), 2, payload(w.size, 1))
		send.ok()
		allOK(second)
	}
}

// mprobeInTurn checks that each message goes to the request that was posted first, of either kind.
func mprobeInTurn(s *side) {
	const n = 9
	for _, w := range ways([]int{small, large}) {
		var sent, posted []*op
		w.inOrder(s, func() {
			for i := range n {
				sent = append(sent, s.send(s.next(), 2, payload(w.size, i)))
			}
		}, func() {
			for i := range n {
				if i%3 == 0 {
					posted = append(posted, s.recv(s.previous(), 2, make([]byte, w.size)))
				} else {
					posted = append(posted, s.mprobe(s.previous(), 2))
				}
			}
		})
		for i := n - 1; i >= 0; i-- { // in any order
			if o := posted[i]; i%3 == 0 {
				o.got(s.previous(), 2, payload(w.size, i))
			} else {
				o.found(s.previous(), 2, w.size)
				o.mrecv(transport.Request{Buf: make([]byte, w.size)}).got(s.previous(), 2, payload(w.size, i))
			}
		}
		allOK(sent)
	}
}

func mprobeTruncates(s *side) {
	for _, size := range []int{small, large} {
		send := s.send(s.next(), 2, payload(size, 1))
		taken := s.mprobe(s.previous(), 2)
		taken.found(s.previous(), 2, size)
		status := transport.Status{Source: s.previous(), Tag: 2, Bytes: size}
		taken.mrecv(transport.Request{Buf: make([]byte, size-1)}).fails(&transport.TruncateError{Status: status, Room: size - 1})
		send.ok()
	}
}

func mprobeCancel(s *side) {
	for _, size := range []int{small, large} {
		waits := s.mprobe(s.previous(), 2)
		waits.cancelled()
		s.barrier()
		send := s.send(s.next(), 2, payload(size, 1))
		taken := s.mprobe(s.previous(), 2)
		taken.found(s.previous(), 2, size)
		require.False(s, s.Cancel(&taken.Request))
		taken.mrecv(transport.Request{Buf: make([]byte, size)}).got(s.previous(), 2, payload(size, 1))
		send.ok()
		s.barrier()
	}
}

func mprobeCancelledSend(s *side) {
	for _, size := range []int{small, large} {
		send := s.ssend(s.next(), 2, payload(size, 1))
		taken := s.mprobe(s.previous(), 2)
		taken.found(s.previous(), 2, size)
		s.barrier()
		send.cancelled()
		s.send(s.next(), 3, nil).ok() // sent after the cancellation
		s.recv(s.previous(), 3, nil).ok()
		taken.mrecv(transport.Request{Buf: make([]byte, size)}).fails(transport.ErrCancelled)
		s.barrier()
	}
}

func mprobeAdvance(s *side) {
	for i, size := range []int{small, large} {
		send := s.ssend(s.next(), 2, payload(size, 1))
		short := s.send(s.next(), 3, payload(small, 3))
		taken, other := s.mprobe(s.previous(), 2), s.mprobe(s.previous(), 3)
		taken.found(s.previous(), 2, size)
		other.found(s.previous(), 3, small)
		short.ok()
		s.barrier()
		cause := errors.New("an error")
		s.Advance(i%2, cause)
		send.fails(cause)
		taken.mrecv(transport.Request{Buf: make([]byte, size)}).fails(cause)
		other.mrecv(transport.Request{Buf: make([]byte, size)}).fails(cause)
	}
}

// mprobeSenderAdvances receives at even ranks what odd ranks, which are in the next epoch, have
// sent.
func mprobeSenderAdvances(s *side) {
	cause := errors.New("an error")
	var send, taken, other *op
	sends := s.Rank()%2 == 1
	if sends {
		send = s.ssend(s.previous(), 2, payload(large, 1))
		s.send(s.previous(), 2, payload(small, 2)).ok()
	} else if s.Rank()+1 < s.Size() {
		taken = s.mprobe(s.next(), 2)
		taken.found(s.next(), 2, large)
	}
	apart := s.dup(1)
	apart.barrier()
	if sends {
		s.Advance(0, cause)
		send.fails(cause)
	}
	apart.barrier()
	if s.Rank()%2 == 0 {
		if taken != nil { // the short message is still there, but it is not for this probe
			other = taken.mrecv(transport.Request{Buf: make([]byte, large)})
		}
		s.Advance(0, cause)
		if other != nil {
			other.fails(cause)
		}
	}
}

func mprobeForgotten(s *side) {
	for _, size := range []int{small, large} {
		send := s.send(s.next(), 2, payload(size, 1))
		s.mprobe(s.previous(), 2).found(s.previous(), 2, size)
		s.barrier()
		if size == large {
			s.Cancel(&send.Request)
		}
		_ = send.wait()
		s.barrier()
	}
}

// mprobeTogether takes messages of unknown lengths in several goroutines.
func mprobeTogether(s *side) {
	const goroutines, each = 4, 25
	length := func(i int) int { return sizes[i%len(sizes)] }
	s.together(2*goroutines, func(g int) {
		for i := range each {
			n := g/2*each + i
			if g%2 == 0 {
				s.send(s.next(), n, payload(length(n), n)).ok()
				continue
			}
			taken := s.mprobe(transport.AnySource, transport.AnyTag)
			found := taken.ok().Status
			taken.mrecv(transport.Request{Buf: make([]byte, found.Bytes)}).got(s.previous(), found.Tag, payload(length(found.Tag), found.Tag))
		}
	})
}

// mprobeRandomly posts receives and Mprobes with and without wildcards and cancels some, in random
// order, while messages arrive. Messages of one source and tag are matched in order: the request
// that was posted first gets the message that was sent first.
func mprobeRandomly(s *side) {
	const messages, actions, tags = 60, 150, 3
	type message struct{ to, tag, size int }
	seed := s.seed()
	sentBy := func(rank int) (all []message) {
		r := random(seed, rank)
		for range messages {
			all = append(all, message{r.IntN(s.Size()), r.IntN(tags), sizes[r.IntN(len(sizes))]})
		}
		return all
	}
	var posted []*op
	post := func(r *rand.Rand, from, tag int) {
		if r.IntN(2) == 0 {
			posted = append(posted, s.mprobe(from, tag))
		} else {
			posted = append(posted, s.irecv(transport.Request{Peer: from, Tag: tag, Take: true}))
		}
	}
	either := func(r *rand.Rand, n int) int { return r.IntN(n+1) - 1 } // or the wildcard, which is -1
	cancel := func(i int) {
		if s.Cancel(&posted[i].Request) {
			posted[i].fails(transport.ErrCancelled)
			posted = slices.Delete(posted, i, i+1)
		}
	}
	s.together(2, func(g int) {
		if g == 0 {
			var sent []*op
			for i, m := range sentBy(s.Rank()) {
				sent = append(sent, s.send(m.to, m.tag, payload(m.size, s.Rank(), i)))
			}
			allOK(sent)
			return
		}
		r := random(seed, s.Rank(), 1)
		for range actions {
			if len(posted) > 0 && r.IntN(3) == 0 {
				cancel(r.IntN(len(posted)))
			} else {
				post(r, either(r, s.Size()), either(r, tags))
			}
		}
		for i := len(posted) - 1; i >= 0; i-- {
			cancel(i)
		}
		expected := make(map[[2]int][][]byte)
		coming := -len(posted)
		for source := range s.Size() {
			for i, m := range sentBy(source) {
				if m.to == s.Rank() {
					key := [2]int{source, m.tag}
					expected[key] = append(expected[key], payload(m.size, source, i))
					coming++
				}
			}
		}
		for range coming {
			post(r, transport.AnySource, transport.AnyTag)
		}
		for _, o := range posted {
			found := o.ok().Status
			key := [2]int{found.Source, found.Tag}
			require.NotEmpty(s, expected[key], "a message too many from rank %d with tag %d", found.Source, found.Tag)
			if o.Where != nil {
				o = o.mrecv(transport.Request{Take: true})
			}
			o.got(found.Source, found.Tag, expected[key][0])
			expected[key] = expected[key][1:]
		}
	})
}
