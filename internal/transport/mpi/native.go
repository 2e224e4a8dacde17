//go:build mpi && cgo && native

package mpi

// #cgo pkg-config: mpi
// #include "native.h"
import "C" // nowhere else, as with shim.h

import (
	"cmp"
	"slices"
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
	base      C.int              // the slot of the communicator that others are made from
	owner     map[C.int]*library // owners of slots
	libraries uint64             // number of libraries so far
	makings   []making           // that this process will propose
	proposed  *making            // the one under agreement
	leaving   bool               // this process no longer needs the others
	forgone   bool               // there may be a proposal that not all processes will make
	quiet     bool               // no process has anything more to propose
}

func (*shim) Pressing() bool { return native.pressing.Load() }

// requestsNative returns how many requests the end of the job waits for.
func requestsNative() int {
	native.mu.Lock()
	defer native.mu.Unlock()
	return native.underway() + len(native.calls)
}

func leaveNative() { native.leaving = true }

// startNative is called by all processes together.
func startNative() error {
	native.owner = make(map[C.int]*library)
	native.calls, native.makings, native.proposed, native.libraries = nil, nil, nil, 0
	native.leaving, native.forgone, native.quiet = false, false, false
	return result("MPI_Comm_dup", C.nx_base(&native.base))
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
			if err := result(native.make(s, ev.value)); err != nil {
				s.Fail(err)
			}
		} else if l := native.owner[ev.slot]; l != nil {
			l.happened(s, ev)
		}
	}
	native.mu.Lock()
	native.pressing.Store(len(native.calls) > 0 || native.proposed == nil && native.proposes() || C.nx_underway() != 0)
	native.mu.Unlock()
	return n > 0 || len(calls) > 0
}

// slots is the number of communicators of a library. It agrees on the one of Revocations.
const slots = int(transport.Topics)

// library is a transport.Library of all processes.
type library struct {
	client transport.LibraryClient
	number uint64 // counts this process's libraries; the same at all processes
	slot   [slots]C.int
	round  uint64 // number of renewals
	made   bool
	words  []uint32 // of the agreement under way
	agreed int      // of words
	closed bool
}

// NewLibrary returns the library of a communicator of all processes. All processes call Listen
// of their libraries in the same order.
func NewLibrary() transport.Library { return &library{} }

// A making is a library that has to be made, or renewed. In MPI 5.0 only MPIX_Comm_shrink,
// which blocks, can make a communicator after deaths. So all processes first agree on what they
// make next, without blocking. Each then calls MPIX_Comm_shrink in its next poll, and no
// process waits for one that waits for it elsewhere.
type making struct {
	library *library
	round   uint64
}

func (l *library) Listen(client transport.LibraryClient) {
	l.client = client
	call(func() (string, C.int) {
		native.libraries++
		l.number = native.libraries
		native.makings = append(native.makings, making{l, 0})
		return "", 0
	})
}

func (l *library) Renew() {
	call(func() (string, C.int) {
		native.makings = append(native.makings, making{l, l.round + 1})
		return "", 0
	})
}

func (l *library) Forgo() {
	call(func() (string, C.int) {
		native.forgone = true
		native.makings = slices.DeleteFunc(native.makings, func(m making) bool { return m.library == l && m.round > 0 })
		return "", 0
	})
}

func (m making) compare(other making) int {
	return cmp.Or(cmp.Compare(m.library.number, other.library.number), cmp.Compare(m.round, other.round))
}

// The parts of a vote on the next making, beside a digest: whether this process will make it. A
// vote for nothing changes no digest.
const (
	willing    = 1 << 30
	digestBits = willing - 1
)

// digest returns bits that all processes have to agree on. Half of them are set.
func (m making) digest() int32 {
	const half = 1<<15 - 1
	d := int32(m.library.number%32<<10 | m.round%(1<<10)) // makings under way together differ by less
	return d | (^d&half)<<15
}

// propose proposes the first making, because others may be about to make it. If this process
// leaves and has none, its vote is for nothing, so that proposals of others that wait in vain
// end.
func (n *natives) propose() (string, C.int) {
	if n.proposed != nil || !n.proposes() {
		return "", 0
	}
	first, vote := making{}, int32(digestBits)
	if len(n.makings) > 0 {
		first = slices.MinFunc(n.makings, making.compare)
		vote = first.digest() | willing
	}
	n.proposed = &first
	return "MPIX_Comm_iagree", C.nx_agree(n.base, C.int(vote))
}

func (n *natives) proposes() bool {
	return len(n.makings) > 0 || n.leaving && n.forgone && !n.quiet
}

// underway returns how many makings the end of the job waits for.
func (n *natives) underway() int {
	if n.proposed != nil && n.proposed.library != nil {
		return 1 + len(n.makings)
	}
	return len(n.makings)
}

// make carries out the proposed making, if all processes have proposed it.
func (n *natives) make(s *node.Sink, agreed C.int) (string, C.int) {
	m := *n.proposed
	n.proposed = nil
	n.quiet = agreed&digestBits == digestBits
	if m.library == nil || agreed&willing == 0 || int32(agreed)&digestBits != m.digest() {
		return "", 0
	}
	n.makings = slices.DeleteFunc(n.makings, func(o making) bool { return o == m })
	l := m.library
	for topic := range l.slot {
		if l.made && topic != int(transport.Signals) {
			continue
		}
		old := l.slot[topic]
		if code := C.nx_make(n.base, &l.slot[topic]); code != 0 {
			return "MPIX_Comm_shrink", code
		}
		n.owner[l.slot[topic]] = l
		if l.made {
			delete(n.owner, old)
			if code := C.nx_free(old); code != 0 {
				return "MPI_Comm_free", code
			}
		}
	}
	l.round = m.round
	if l.closed {
		return "MPI_Comm_free", l.free()
	}
	tell := l.client.Renewed
	if !l.made {
		l.made = true
		tell = l.client.Made
	}
	s.Tell(tell)
	return "", 0
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

func (l *library) Close() {
	call(func() (string, C.int) {
		l.closed = true
		if !l.made {
			return "", 0
		}
		return "MPI_Comm_free", l.free()
	})
}

// free frees the library's communicators.
func (l *library) free() C.int {
	for _, slot := range l.slot {
		if native.owner[slot] != l {
			continue
		}
		delete(native.owner, slot)
		if code := C.nx_free(slot); code != 0 {
			return code
		}
	}
	return 0
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
		topic := transport.Topic(slices.Index(l.slot[:], ev.slot))
		s.Tell(func() { l.client.Noticed(topic) })
	}
}
