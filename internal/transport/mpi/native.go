//go:build mpi && cgo && native

package mpi

// #cgo pkg-config: mpi
// #include "native.h"
import "C" // nowhere else, as with shim.h

import (
	"sync"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// native is what this process has of MPI's own communicators for errors. What is asked of it
// waits for the next poll, because MPI is called there.
var native natives

type natives struct {
	pressing atomic.Bool // something waits for a poll, or is under way

	mu    sync.Mutex
	calls []func() (string, C.int)

	// What follows is used under the lock of all calls of MPI.
	base  C.int
	owner map[C.int]*library // of a slot
	queue []*library         // to be made, one after another
}

func (*shim) Pressing() bool { return native.pressing.Load() }

// startNative begins, at all processes together.
func startNative() error {
	native.owner = make(map[C.int]*library)
	native.calls, native.queue = nil, nil
	return result("MPI_Comm_dup", C.nx_base(&native.base))
}

// call has f called with the next poll, which returns what it has called and the code of that.
func call(f func() (string, C.int)) {
	native.mu.Lock()
	native.calls = append(native.calls, f)
	native.mu.Unlock()
	native.pressing.Store(true)
}

// pollNative does what was asked, and says what has happened.
func pollNative(s node.Sink) (happened bool) {
	if native.owner == nil {
		return false
	}
	native.mu.Lock()
	calls := native.calls
	native.calls = nil
	native.mu.Unlock()
	for _, f := range append(calls, native.vote) {
		if err := result(f()); err != nil {
			s.Fail(err)
			return true
		}
	}
	var n C.int
	if err := result(C.GoString(C.nx_call), C.nx_poll(&n)); err != nil {
		s.Fail(err)
	}
	for _, ev := range C.nx_events[:n] {
		if ev.slot == native.base {
			l := native.queue[0]
			native.queue = native.queue[1:]
			l.made = ev.value != 0
			s.Tell(func() { l.client.Made(l.made) })
			if err := result(native.next()); err != nil {
				s.Fail(err)
			}
		} else if l := native.owner[ev.slot]; l != nil {
			l.happened(s, ev)
		}
	}
	native.mu.Lock()
	native.pressing.Store(len(native.calls) > 0 || C.nx_underway() != 0)
	native.mu.Unlock()
	return n > 0 || len(calls) > 0
}

// slots is how many communicators a library has. It agrees on that of Revocations.
const slots = int(transport.Topics)

// library is a transport.Library of all processes.
type library struct {
	client transport.LibraryClient
	slot   [slots]C.int
	making int // slots that are not there yet
	voted  bool
	made   bool // at all processes
	words  []uint32
	agreed int // of words
	closed bool
}

// NewLibrary returns one of a communicator of all processes. They all have theirs listen
// in one order.
func NewLibrary() transport.Library { return &library{} }

func (l *library) Listen(client transport.LibraryClient) {
	l.client = client
	call(func() (string, C.int) {
		if native.queue = append(native.queue, l); len(native.queue) > 1 {
			return "", 0
		}
		return native.next()
	})
}

// next has the first library of the queue be made: its communicators, and an agreement of all
// processes on whether they are there. A process that has died may keep that of the others
// from ending.
func (n *natives) next() (string, C.int) {
	if len(n.queue) == 0 {
		return "", 0
	}
	l := n.queue[0]
	for i := range l.slot {
		if code := l.make(i, n.base); code != 0 {
			return "MPI_Comm_idup", code
		}
	}
	return "", 0
}

// vote agrees on whether the first library of the queue is there, once this process knows.
func (n *natives) vote() (string, C.int) {
	if len(n.queue) == 0 || n.queue[0].voted {
		return "", 0
	}
	l, is := n.queue[0], C.int(1)
	if l.making > 0 {
		if C.nx_dead(n.base) == 0 {
			return "", 0
		}
		is = 0
	}
	l.voted = true
	return "MPIX_Comm_iagree", C.nx_agree(n.base, is)
}

func (l *library) make(i int, from C.int) C.int {
	l.making++
	code := C.nx_dup(from, &l.slot[i])
	native.owner[l.slot[i]] = l
	return code
}

func (l *library) Revoke(topic transport.Topic) {
	call(func() (string, C.int) { return "MPIX_Comm_revoke", C.nx_revoke(l.slot[topic]) })
}

func (l *library) Agree(words []uint32) {
	call(func() (string, C.int) {
		l.words, l.agreed = make([]uint32, len(words)), 0
		for _, w := range words {
			if code := C.nx_agree(l.slot[transport.Revocations], C.int(int32(w))); code != 0 {
				return "MPIX_Comm_iagree", code
			}
		}
		return "", 0
	})
}

func (l *library) Renew() {
	call(func() (string, C.int) {
		if l.closed {
			return "", 0
		}
		old := l.slot[transport.Signals]
		delete(native.owner, old)
		if code := l.make(int(transport.Signals), l.slot[transport.Revocations]); code != 0 {
			return "MPI_Comm_idup", code
		}
		return "MPI_Comm_free", C.nx_free(old)
	})
}

func (l *library) Close() {
	call(func() (string, C.int) {
		l.closed = true
		for _, slot := range l.slot {
			delete(native.owner, slot)
			if code := C.nx_free(slot); code != 0 {
				return "MPI_Comm_free", code
			}
		}
		return "", 0
	})
}

// happened tells the client what has.
func (l *library) happened(s node.Sink, ev C.nx_event) {
	switch ev.kind {
	case C.NX_AGREED:
		l.words[l.agreed] = uint32(ev.value)
		if l.agreed++; l.agreed == len(l.words) {
			words := l.words
			s.Tell(func() { l.client.Agreed(words) })
		}
	case C.NX_REVOKED:
		for topic, slot := range l.slot {
			if slot == ev.slot {
				s.Tell(func() { l.client.Noticed(transport.Topic(topic)) })
			}
		}
	case C.NX_MADE:
		if ev.value != 0 {
			l.making--
		}
		if l.made && l.making == 0 {
			s.Tell(l.client.Renewed)
		}
	}
}
