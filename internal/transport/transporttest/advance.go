package transporttest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// Design rules P3 and P4. All ranks advance, as they do when an error has been resolved, but at
// different times. If one rank has to wait for another one to advance, they talk on a communicator
// without errors.
var advances = []test{
	{"WhatIsPendingEndsWithTheCause", 1, endPending},
	{"WhatWasDecidedOnBeforeEndsWithTheCause", 1, endStale},
	{"BuffersOfWhatEndedAreFree", 2, leaveBuffers},
	{"MessagesFromBeforeAreNeverReceived", 1, dropMessages},
	{"MessagesFromBeforeThatComeLateAreNeverReceived", 2, dropLateMessages},
	{"MessagesFromAfterThatComeEarlyAreKept", 2, keepEarlyMessages},
	{"CompletedMayGoOnInTheNewEpoch", 1, goOnInCompleted},
	{"QuietAfterCompleted", 1, quietAfterCompleted},
	{"AnyNumberOfErrors", 1, manyErrors},
	{"RevokeEndsAllForGood", 1, revokeForGood},
}

var errCause = errors.New("the error that was resolved")

// aloof returns the communicator without errors.
func (s *side) aloof() *side {
	s.Helper()
	ctl := s.dup(1 << 32)
	ctl.barrier() // all ranks have it
	return ctl
}

// nilOr checks how a standard send that no receive matched has ended. It ended without an error if
// its bytes were buffered or dropped somewhere, else with the cause.
func (o *op) nilOr(cause error) {
	o.s.Helper()
	if err := o.wait(); err != nil {
		require.Equal(o.s, cause, err, "%v", o)
	}
}

func endPending(s *side) {
	var fail, plain []*op
	noAlloc := func(int) []byte { s.Errorf("Alloc of a receive that got no message"); return nil }
	fail = append(fail,
		s.recv(s.previous(), 1, make([]byte, small)),
		s.recv(s.previous(), -7, make([]byte, large)),
		s.irecv(transport.Request{Peer: transport.AnySource, Tag: 2, Take: true}),
		s.irecv(transport.Request{Peer: transport.AnySource, Tag: 2, Alloc: noAlloc}),
		s.probe(s.previous(), 3),
		s.probe(transport.AnySource, 4),
		s.ssend(s.next(), 5, nil),
		s.ssend(s.next(), 5, payload(small, 5)),
		s.ssend(s.Rank(), 6, payload(large, 6)),
	)
	plain = append(plain, s.send(s.next(), 5, payload(large, 5)), s.send(s.next(), 5, payload(small, 5)))
	s.barrier()
	for _, o := range fail {
		o.pending()
	}
	s.Advance(0, errCause)
	for _, o := range fail {
		o.fails(errCause)
	}
	for _, o := range plain {
		o.nilOr(errCause)
	}
	s.ring(1)
}

// endStale starts operations with the previous epoch, like a goroutine that was overtaken by an
// error.
func endStale(s *side) {
	old := s.Epoch()
	first, second := errors.New("first error"), errors.New("second error")
	for _, cause := range []error{first, second} {
		s.Advance(0, cause)
		late := s.at(old)
		for _, o := range []*op{
			late.recv(s.previous(), 1, nil),
			late.recv(transport.AnySource, transport.AnyTag, make([]byte, large)),
			late.probe(s.previous(), transport.AnyTag),
			late.send(s.next(), 1, payload(small, 1)),
			late.send(s.next(), 1, nil),
			late.send(s.Rank(), 1, payload(large, 1)),
			late.ssend(s.next(), 1, payload(small, 1)),
			late.isend(transport.Request{Peer: s.next(), Tag: 1, Mode: transport.Shared, Buf: payload(large, 1)}),
		} {
			o.fails(cause)
		}
		require.False(s, s.TrySend(s.next(), 1, old, 0, payload(small, 1)), "TrySend with an epoch that is over")
	}
	s.barrier()
	recv := s.recv(s.previous(), transport.AnyTag, make([]byte, small))
	s.barrier()
	s.send(s.next(), 2, payload(small, 2)).ok()
	recv.got(s.previous(), 2, payload(small, 2))
}

// leaveBuffers lets each rank advance before the others and write other bytes into the buffers that
// became free. Then the others send it messages that would have fit into these buffers.
func leaveBuffers(s *side) {
	ctl := s.aloof()
	for first := range s.Size() {
		var received, sent []*op
		for _, size := range []int{small, 1000, large} {
			received = append(received,
				s.recv(transport.AnySource, 1, make([]byte, size)),
				s.irecv(transport.Request{Peer: first, Tag: 1, Buf: make([]byte, size)}))
			sent = append(sent, s.ssend(first, 2, payload(size, 1)))
		}
		ctl.barrier()
		free := func() {
			s.Advance(0, errCause)
			for _, o := range append(received, sent...) {
				o.fails(errCause)
				copy(o.Buf, payload(len(o.Buf), 2))
			}
		}
		if s.Rank() == first {
			free()
		}
		ctl.barrier()
		var late []*op
		if s.Rank() != first {
			for _, size := range []int{small, 1000, large} {
				late = append(late, s.send(first, 1, payload(size, 3)))
			}
		}
		ctl.barrier()
		ctl.barrier()
		if s.Rank() != first {
			free()
		}
		for _, o := range late {
			o.nilOr(errCause)
		}
		s.ring(1, first) // into other buffers
		for _, o := range append(received, sent...) {
			s.same(payload(len(o.Buf), 2), o.Buf, "buffer of what ended, used for something else")
		}
		ctl.barrier()
	}
}

func dropMessages(s *side) {
	for round := range 3 {
		var synchronous, plain []*op
		for i := range 4 {
			plain = append(plain,
				s.send(s.next(), i, payload(small, 1)),
				s.send(s.next(), i, payload(large, 1)),
				s.trySend(s.next(), i, payload(small, 1)),
				s.isend(transport.Request{Peer: s.next(), Tag: i, Mode: transport.Shared, Buf: payload(large, 1)}))
			synchronous = append(synchronous,
				s.ssend(s.next(), i, payload(small, 1)),
				s.ssend(s.next(), i, payload(large, 1)))
		}
		s.probe(s.previous(), 3).found(s.previous(), 3, small)
		s.barrier()
		s.Advance(0, errCause)
		probe := s.probe(transport.AnySource, 1)
		exact := s.recv(s.previous(), 2, make([]byte, large))
		for _, o := range synchronous {
			o.fails(errCause)
		}
		for _, o := range plain {
			o.nilOr(errCause)
		}
		s.barrier()
		probe.pending()
		exact.pending()
		s.barrier()
		s.send(s.next(), 2, payload(1000, round)).ok()
		exact.got(s.previous(), 2, payload(1000, round))
		s.send(s.next(), 1, payload(1000, round)).ok()
		probe.found(s.previous(), 1, 1000)
		s.recv(transport.AnySource, transport.AnyTag, make([]byte, large)).got(s.previous(), 1, payload(1000, round))
	}
}

// dropLateMessages lets each rank advance before the others send to it.
func dropLateMessages(s *side) {
	ctl := s.aloof()
	for first := range s.Size() {
		if s.Rank() == first {
			s.Advance(0, errCause)
			received := []*op{
				s.recv((first+1)%s.Size(), 2, make([]byte, large)),
				s.recv(transport.AnySource, transport.AnyTag, make([]byte, large)),
			}
			probe := s.probe(transport.AnySource, 1)
			ctl.barrier()
			ctl.barrier() // the others have sent
			for _, o := range append(received, probe) {
				o.pending()
			}
			ctl.barrier()
			from := (first + 1) % s.Size()
			received[0].got(from, 2, payload(small, 3))
			from = received[1].ok().Status.Source
			received[1].got(from, 1, payload(large, 4, from))
			for range s.Size() - 2 {
				found := s.probe(transport.AnySource, 1).ok().Status
				s.recv(found.Source, 1, make([]byte, large)).got(found.Source, 1, payload(large, 4, found.Source))
			}
			probe.cancelledOrFound()
			ctl.barrier()
			continue
		}
		ctl.barrier()
		var plain, synchronous []*op
		for tag := range 3 {
			plain = append(plain,
				s.send(first, tag, payload(small, 1)),
				s.trySend(first, tag, payload(small, 1)),
				s.send(first, tag, payload(large, 1)))
			synchronous = append(synchronous, s.ssend(first, tag, payload(small, 1)), s.ssend(first, tag, payload(large, 1)))
		}
		ctl.barrier()
		for _, o := range synchronous {
			o.pending()
		}
		ctl.barrier()
		s.Advance(0, errCause)
		for _, o := range plain {
			o.nilOr(errCause)
		}
		for _, o := range synchronous {
			o.fails(errCause)
		}
		if s.Rank() == (first+1)%s.Size() {
			s.ssend(first, 2, payload(small, 3)).ok()
		}
		s.ssend(first, 1, payload(large, 4, s.Rank())).ok()
		ctl.barrier()
	}
}

// cancelledOrFound ends a probe that may have found a message.
func (o *op) cancelledOrFound() {
	o.s.Helper()
	if o.s.Cancel(&o.Request) {
		o.fails(transport.ErrCancelled)
	} else {
		o.ok()
	}
}

// keepEarlyMessages lets each rank advance and send before the others advance.
func keepEarlyMessages(s *side) {
	ctl := s.aloof()
	for first := range s.Size() {
		if s.Rank() == first {
			ctl.barrier()
			s.Advance(0, errCause)
			var plain, synchronous []*op
			for to := range s.Size() {
				if to == first {
					continue
				}
				plain = append(plain,
					s.send(to, 1, payload(small, to, 1)),
					s.send(to, 1, payload(large, to, 2)))
				synchronous = append(synchronous,
					s.ssend(to, 1, payload(small, to, 3)),
					s.ssend(to, 1, payload(large, to, 4)))
				plain = append(plain,
					s.isend(transport.Request{Peer: to, Tag: 1, Mode: transport.Shared, Buf: payload(large, to, 5)}),
					s.trySend(to, 1, payload(small, to, 6)))
			}
			ctl.barrier()
			for _, o := range synchronous {
				o.pending()
			}
			ctl.barrier()
			allOK(plain)
			allOK(synchronous)
			ctl.barrier()
			continue
		}
		before := []*op{
			s.recv(first, 1, make([]byte, large)),
			s.recv(transport.AnySource, transport.AnyTag, make([]byte, large)),
			s.probe(first, 1),
		}
		ctl.barrier()
		ctl.barrier() // the first has sent
		before = append(before, s.recv(first, 1, make([]byte, large)), s.probe(first, 1))
		for _, o := range before {
			o.pending()
		}
		ctl.barrier()
		s.Advance(0, errCause)
		for _, o := range before {
			o.fails(errCause)
		}
		s.probe(first, 1).found(first, 1, small)
		for i, size := range []int{small, large, small, large, large, small} {
			s.recv(first, 1, make([]byte, large)).got(first, 1, payload(size, s.Rank(), i+1))
		}
		ctl.barrier()
	}
}

func goOnInCompleted(s *side) {
	after := make(chan *op, 1)
	recv := s.op(transport.Request{Peer: s.previous(), Tag: 1, Buf: make([]byte, small)})
	recv.Done = completer(func(r *transport.Request) {
		recv.Completed(r)
		after <- s.recv(s.previous(), 1, make([]byte, small))
	})
	s.Irecv(&recv.Request)
	s.Advance(0, errCause)
	recv.fails(errCause)
	next := <-after
	require.Equal(s, s.Epoch(), next.Epoch)
	s.barrier()
	s.send(s.next(), 1, payload(small, 1)).ok()
	next.got(s.previous(), 1, payload(small, 1))
}

// quietAfterCompleted lets each rank in turn advance in the Completed of a request of a collective
// operation: the operation may still use its buffers until that returns.
func quietAfterCompleted(s *side) {
	const tag = -7
	ctl := s.aloof()
	for first := range s.Size() {
		for i, size := range []int{small, small, large} {
			send := func() *op {
				return []func(int, int, []byte) *op{s.trySend, s.send, s.send}[i](first, tag, payload(size, first))
			}
			if s.Rank() == first {
				quiet := make(chan struct{})
				recv := s.op(transport.Request{Peer: s.previous(), Tag: tag, Buf: make([]byte, size)})
				recv.Done = completer(func(r *transport.Request) {
					s.Advance(0, errCause)
					s.Quiesce(func() { close(quiet) })
					select {
					case <-quiet:
						s.Errorf("quiet within Completed, %d bytes", size)
					default:
					}
					recv.Completed(r)
				})
				s.Irecv(&recv.Request)
				ctl.barrier()
				if s.Size() == 1 {
					send().nilOr(errCause)
				}
				recv.got(s.previous(), tag, payload(size, first))
				await(s, quiet)
				ctl.barrier()
				continue
			}
			ctl.barrier()
			var sent *op
			if s.next() == first {
				sent = send()
			}
			ctl.barrier()
			s.Advance(0, errCause)
			if sent != nil {
				sent.ok()
			}
		}
	}
}

// manyErrors makes the epoch's count wrap.
func manyErrors(s *side) {
	ctl := s.aloof()
	for round := range 260 {
		recv := s.recv(s.previous(), 2, make([]byte, small))
		ssend := s.ssend(s.next(), 3, payload(small, round))
		left := []*op{s.send(s.next(), 1, payload(small, round, 1)), s.send(s.next(), 1, payload(large, round))}
		ctl.barrier()
		before := s.Epoch()
		s.Advance(0, errCause)
		require.Equal(s, before.Next(0), s.Epoch())
		recv.fails(errCause)
		ssend.fails(errCause)
		for _, o := range left {
			o.nilOr(errCause)
		}
		recv = s.recv(transport.AnySource, transport.AnyTag, make([]byte, small))
		s.send(s.next(), 1, payload(small, round, 2)).ok()
		recv.got(s.previous(), 1, payload(small, round, 2))
		ctl.barrier()
	}
}

// revokeForGood revokes a communicator, then has errors on it, and revokes it again. All requests
// end with the first cause, and the epoch still advances.
func revokeForGood(s *side) {
	d := s.dup(1)
	s.barrier() // all ranks have it
	before := []*op{d.recv(s.previous(), 1, nil), d.probe(transport.AnySource, 2), d.ssend(s.next(), 3, payload(large, 1))}
	s.barrier()
	d.Revoke(errCause)
	for _, o := range before {
		o.fails(errCause)
	}
	for range 3 {
		for _, o := range []*op{
			d.recv(s.previous(), 1, nil), d.recv(s.previous(), -7, nil), d.probe(s.previous(), transport.AnyTag),
			d.send(s.next(), 1, nil), d.send(s.next(), 1, payload(large, 1)), d.ssend(s.Rank(), 1, nil),
		} {
			o.fails(errCause)
		}
		require.False(s, d.TrySend(s.next(), 1, d.Epoch(), 0, nil))
		before := d.Epoch()
		d.Advance(0, errors.New("an error after that"))
		require.Equal(s, before.Next(0), d.Epoch())
		d.Revoke(errors.New("revoked again"))
	}
	require.Empty(s, transport.Pending(d))
}
