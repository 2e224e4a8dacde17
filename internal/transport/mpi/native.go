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

// native has this process's MPI communicators for errors. Requests to MPI wait for the next
// poll, because MPI is called there.
var native natives

type natives struct {
	pressing atomic.Bool // a call waits for a poll, or something is under way

	mu    sync.Mutex
	calls []func() (string, C.int)

	// The lock of all MPI calls protects the following fields.
	base     C.int              // the slot of the communicator that others are made from
	first    *C.int             // that of the communicator of the first library; nil: it is taken
	owner    map[C.int]*library // owners of slots
	makings  []*library         // to be made, in order
	proposed bool               // the agreement to make the first is under way
}

const isNative = true

func (*shim) Pressing() bool { return native.pressing.Load() }

// requestsNative returns how many requests the end of the job waits for.
func requestsNative() int {
	native.mu.Lock()
	defer native.mu.Unlock()
	return len(native.makings) + len(native.calls)
}

// startNative is called by all processes together.
func startNative() error {
	native.owner = make(map[C.int]*library)
	native.calls, native.makings, native.proposed, native.first = nil, nil, false, new(C.int)
	for _, slot := range []*C.int{&native.base, native.first} {
		if err := result("MPI_Comm_dup", C.nx_dup(slot)); err != nil {
			return err
		}
	}
	return nil
}

// call calls f in the next poll. F returns the name of the MPI function that it has called, and
// its code.
func call(f func() (string, C.int)) {
	native.mu.Lock()
	native.calls = append(native.calls, f)
	native.mu.Unlock()
	native.pressing.Store(true)
}

// pollNative does what was requested, and reports what has happened.
func pollNative(s *node.Sink) (happened bool) {
	if native.owner == nil {
		return false
	}
	native.mu.Lock()
	calls := native.calls
	native.calls = nil
	native.mu.Unlock()
	for _, f := range append(calls, native.propose) {
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
			if err := result(native.make()); err != nil {
				s.Fail(err)
			}
		} else if l := native.owner[ev.slot]; l != nil {
			l.happened(s, ev)
		}
	}
	native.mu.Lock()
	native.pressing.Store(len(native.calls) > 0 || len(native.makings) > 0 && !native.proposed || C.nx_underway() != 0)
	native.mu.Unlock()
	return n > 0 || len(calls) > 0
}

// library is a transport.Library of all processes.
//
// The communicator of a job's first library is made when the job starts. In MPI 5.0 only
// MPIX_Comm_shrink, which blocks, can make another one after deaths. So all processes first agree
// to make it, without blocking. Each then calls MPIX_Comm_shrink in its next poll, and no process
// waits for one that waits for it elsewhere.
type library struct {
	client transport.LibraryClient
	slot   C.int
	made   bool
	early  []func() (string, C.int) // calls that wait until it is made
	words  []uint32                 // of the agreement under way
	agreed int                      // of words
}

// NewLibrary returns the library of a communicator of all processes. All processes call Listen
// of their libraries in the same order.
func NewLibrary() transport.Library { return &library{} }

func (l *library) Listen(client transport.LibraryClient) {
	l.client = client
	call(func() (string, C.int) {
		if native.first == nil {
			native.makings = append(native.makings, l)
			return "", 0
		}
		l.slot = *native.first
		native.first = nil
		C.nx_watch(l.slot)
		return l.begin()
	})
}

// propose begins the agreement to make the first library, because others may be about to make it.
func (n *natives) propose() (string, C.int) {
	if n.proposed || len(n.makings) == 0 {
		return "", 0
	}
	n.proposed = true
	return "MPIX_Comm_iagree", C.nx_agree(n.base, 1)
}

// make makes the first library, as all processes have agreed to.
func (n *natives) make() (string, C.int) {
	l := n.makings[0]
	n.makings, n.proposed = n.makings[1:], false
	if code := C.nx_make(n.base, &l.slot); code != 0 {
		return "MPIX_Comm_shrink", code
	}
	return l.begin()
}

// begin makes the calls that have waited until the library has its communicator.
func (l *library) begin() (string, C.int) {
	native.owner[l.slot] = l
	l.made = true
	for _, f := range l.early {
		if call, code := f(); code != 0 {
			return call, code
		}
	}
	l.early = nil
	return "", 0
}

// call calls f in the next poll in which the library is made.
func (l *library) call(f func() (string, C.int)) {
	call(func() (string, C.int) {
		if !l.made {
			l.early = append(l.early, f)
			return "", 0
		}
		return f()
	})
}

func (l *library) Revoke() {
	l.call(func() (string, C.int) { return "MPIX_Comm_revoke", C.nx_revoke(l.slot) })
}

func (l *library) Agree(words []uint32) {
	l.call(func() (string, C.int) {
		l.words, l.agreed = make([]uint32, len(words)), 0
		for _, w := range words {
			if code := C.nx_agree(l.slot, C.int(int32(w))); code != 0 {
				return "MPIX_Comm_iagree", code
			}
		}
		return "", 0
	})
}

func (l *library) Close() {
	l.call(func() (string, C.int) {
		delete(native.owner, l.slot)
		return "MPI_Comm_free", C.nx_free(l.slot)
	})
}

// happened tells the client of an event.
func (l *library) happened(s *node.Sink, ev C.nx_event) {
	switch ev.kind {
	case C.NX_AGREED:
		l.words[l.agreed] = uint32(ev.value)
		if l.agreed++; l.agreed == len(l.words) {
			words := l.words
			s.Tell(func() { l.client.Agreed(words) })
		}
	case C.NX_REVOKED:
		s.Tell(l.client.Revoked)
	}
}
