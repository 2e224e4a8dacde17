package transporttest

import (
	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// All releases are on a duplicate: no rank releases the first communicator of a program.
var releases = []test{
	{"ReleasedByOne", 2, releaseByOne},
	{"ReleasedByAllOthers", 2, releaseByOthers},
	{"ReleasedByAllAtOnce", 2, releaseAtOnce},
}

// toRelease returns a duplicate, which is to be released.
func (s *side) toRelease(seq uint64) *side {
	if s.Features().Name == "sim" {
		s.Skip("its ranks need not learn of it")
	}
	return s.dup(seq)
}

// awaits has the program wait for requests.
func (s *side) awaits(ops ...*op) []*op {
	for _, o := range ops {
		o.awaited.Store(true)
	}
	s.Look()
	return ops
}

// inVain checks that the program waits in vain for requests, because a rank has released the
// communicator.
func (s *side) inVain(rank int, ops ...*op) {
	s.Helper()
	for _, o := range s.awaits(ops...) {
		o.fails(&transport.LeftError{Rank: rank, Released: true})
	}
}

// call begins a send or a receive of a collective call.
func (s *side) call(begin func(transport.Request) *op, peer, number int) *op {
	return begin(transport.Request{Peer: peer, Tag: transport.CollectiveTag(number), Mode: transport.Synchronous, Signature: releasedCall})
}

var releasedCall = signature.Call{Kind: signature.Barrier}.Word()

// releaseByOne has the first rank release a communicator on which it has made a call. What it had
// begun before continues.
func releaseByOne(s *side) {
	d := s.toRelease(1)
	first := d.Call(d.epoch(), releasedCall)
	var begun, gone []*op
	if s.Rank() == 0 {
		for r := 1; r < s.Size(); r++ {
			d.send(r, 1, payload(small, 1)).ok()
			begun = append(begun, d.send(r, 2, payload(large, 2)), d.recv(r, 3, make([]byte, large)))
		}
		s.barrier()
		d.Release()
		d.Release()
		s.barrier()
		allOK(begun)
		for r := 1; r < s.Size(); r++ { // a step of the call that it has made
			d.call(d.isend, r, first).ok()
		}
	} else {
		operations := func() []*op {
			mprobe := d.op(transport.Request{Tag: 4})
			d.Mprobe(&mprobe.Request)
			return []*op{d.recv(0, 4, nil), d.probe(0, 4), mprobe, d.ssend(0, 4, nil), d.send(0, 4, payload(large, 4))}
		}
		begun = operations()
		step := d.call(d.irecv, 0, first)
		s.barrier()
		d.inVain(0, begun...)
		d.recv(0, 1, make([]byte, small)).got(0, 1, payload(small, 1))
		d.recv(0, 2, make([]byte, large)).got(0, 2, payload(large, 2))
		second := d.Call(d.epoch(), releasedCall)
		calls := []*op{d.call(d.irecv, 0, second), d.call(d.isend, 0, second)}
		if s.Features().Board > 0 {
			o, _ := d.meet(transport.Together, 0, 8, 1)
			calls = append(calls, o)
		}
		d.inVain(0, append(operations(), d.recv(0, transport.AnyTag, nil))...)
		for _, o := range calls { // even if the program does not wait
			o.fails(&transport.LeftError{Rank: 0, Released: true})
		}
		step.pending()
		s.barrier()
		d.send(0, 3, payload(large, 3)).ok()
		step.ok()
	}
	require.False(s, s.HasReturned(0))
	s.barrier()
	d.Advance(0, errCause)
	if s.Rank() > 0 {
		gone = append(gone, d.recv(0, 1, nil), d.call(d.irecv, 0, d.Call(d.epoch(), releasedCall)))
		d.inVain(0, gone...)
	}
	s.barrier()
}

// releaseByOthers has all ranks but the first release a communicator, the last one later.
func releaseByOthers(s *side) {
	d, last := s.toRelease(1), s.Size()-1
	if s.Rank() > 0 && s.Rank() < last {
		d.Release()
	}
	if s.Rank() == 0 {
		anybody := d.awaits(d.recv(transport.AnySource, 1, nil))[0]
		for r := 1; r < last; r++ {
			d.inVain(r, d.recv(r, 1, nil))
		}
		anybody.pending()
		s.barrier()
		anybody.found(last, 1, 0)
		anybody = d.recv(transport.AnySource, 1, nil)
		d.inVain(transport.AnySource, anybody, d.probe(transport.AnySource, 1))
		d.send(0, 1, nil).ok() // the program may still send to itself
		d.recv(0, 1, nil).ok()
	} else {
		s.barrier()
	}
	if s.Rank() == last {
		d.send(0, 1, nil).ok()
		d.Release()
	}
	s.barrier()
}

// releaseAtOnce has all ranks release some communicators while they have operations under way.
func releaseAtOnce(s *side) {
	var sides []*side
	var begun, vain []*op
	for i := range uint64(3) {
		d := s.toRelease(i)
		sides = append(sides, d)
		begun = append(begun, d.recv(s.previous(), 1, make([]byte, large)), d.send(s.next(), 1, payload(large, 1)))
		vain = append(vain, d.recv(s.previous(), 2, nil), d.ssend(s.next(), 3, nil))
	}
	// Each waits until the receives of the next rank are posted.
	s.barrier()
	for i, d := range sides {
		d.awaits(vain[2*i : 2*i+2]...)
		d.Release()
	}
	allOK(begun)
	for i, o := range vain {
		o.fails(&transport.LeftError{Rank: []int{s.previous(), s.next()}[i%2], Released: true})
	}
	s.barrier()
}
