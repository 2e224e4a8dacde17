//go:build mpi

package mpi

// #cgo pkg-config: mpi
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// engine is this process's part in the job: what its communicators share. All
// calls of MPI are made with mu held.
type engine struct {
	mu         sync.Mutex
	wanted     atomic.Int32 // how many wait for mu to begin something
	rank, size int
	crowded    bool // there are more ranks than cores
	sides      map[context]*side
	closed     map[context]struct{}
	early      map[context][]*arrival // for communicators that this rank has not made yet
	bodies     map[uint64]*body       // under way
	offers     map[uint64]*body       // of this process, not accepted so far
	lastID     uint64
	tags       uint32
	err        error // of MPI; nothing works after it
	events     [maxEvents]C.mx_event

	// What is to be told when mu is free, in this order, by one goroutine at a time.
	news    []news
	telling bool

	stop chan struct{}
	idle sync.WaitGroup // the goroutine that makes progress when nobody waits
}

const maxEvents = 128

// news is a request that has ended, or a message for a listener.
type news struct {
	request *transport.Request
	to      transport.Listener
	from    int
	payload []byte
}

// body is a message's bytes that are to go, or to come, apart from its head.
type body struct {
	side    *side
	request *transport.Request // nil: it is a listener's
	arrival *arrival           // that it is part of
	bytes   []byte
	parts   int // messages of MPI that have not ended
	lengths int // of those that have come
	pin     runtime.Pinner
}

// Start begins to take part in the job. It returns the communicator of all.
func Start() (*Job, error) {
	e := &engine{
		sides: make(map[context]*side), closed: make(map[context]struct{}), early: make(map[context][]*arrival),
		bodies: make(map[uint64]*body), offers: make(map[uint64]*body), stop: make(chan struct{}),
	}
	var rank, size, enough, crowded C.int
	code := C.mx_start(&rank, &size, &enough, &crowded, C.int(runtime.NumCPU()))
	switch {
	case code != 0:
		return nil, failure("starting MPI", code)
	case enough == 0:
		return nil, errors.New("this MPI can't be called from several threads, one at a time (MPI_THREAD_SERIALIZED)")
	}
	e.rank, e.size, e.crowded = int(rank), int(size), crowded != 0
	e.idle.Go(e.goOn)
	return &Job{e, e.newSide(world, e.rank, nil, 0)}, nil
}

// A Job is an MPI job as one of its processes sees it.
type Job struct {
	engine *engine
	world  *side
}

// World is the communicator of all processes.
func (j *Job) World() transport.Comm { return j.world }

// End waits until all processes have called it, and ends MPI. Until then this one
// takes part in what the others still do.
func (j *Job) End() error {
	e := j.engine
	e.mu.Lock()
	code := C.mx_leave()
	e.mu.Unlock()
	var all C.int
	for code == 0 && all == 0 {
		e.progress(pollsBusy)
		e.mu.Lock()
		code = C.mx_left(&all)
		e.mu.Unlock()
	}
	close(e.stop)
	e.idle.Wait()
	if code == 0 {
		code = C.mx_stop()
	}
	if code != 0 {
		return failure("ending MPI", code)
	}
	return nil
}

func failure(what string, code C.int) error {
	text := make([]byte, 512)
	C.mx_error(code, (*C.char)(unsafe.Pointer(&text[0])), C.int(len(text)))
	return fmt.Errorf("%s: %s", what, C.GoString((*C.char)(unsafe.Pointer(&text[0]))))
}

const (
	pollsBusy = 20                     // in one go, by a goroutine that waits
	period    = 500 * time.Microsecond // of progress when nobody waits
)

// goOn makes progress now and then.
func (e *engine) goOn() {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-tick.C:
			for e.progress(1) {
			}
		}
	}
}

// drive makes progress until the condition holds. While nothing happens it lets
// others have the core: other goroutines, and, where there are more ranks than
// cores, other processes.
func (e *engine) drive(until func() bool) {
	alone := runtime.GOMAXPROCS(0) == 1 // on a core that MPI has bound the process to, say
	for idle := 1; !until(); idle++ {
		if e.progress(pollsBusy) {
			idle = 0
			continue
		}
		if alone || idle%16 == 0 {
			runtime.Gosched()
		}
		if e.crowded {
			C.mx_yield()
		}
	}
}

// lock takes mu to begin something. Who makes progress all the time lets others have
// it first.
func (e *engine) lock() {
	e.wanted.Add(1)
	e.mu.Lock()
	e.wanted.Add(-1)
}

// progress moves messages, and says whether something happened.
func (e *engine) progress(polls int) bool {
	for e.wanted.Load() > 0 {
		runtime.Gosched()
	}
	e.mu.Lock()
	if e.err != nil {
		e.mu.Unlock()
		return false
	}
	var code C.int
	n := C.mx_poll(C.int(polls), &e.events[0], maxEvents, &code)
	for i := range e.events[:n] {
		switch ev := &e.events[i]; ev.kind {
		case C.MX_CAME:
			e.came(int(ev.source), unsafe.Slice((*byte)(ev.bytes), ev.length))
		case C.MX_BODY:
			e.ended(uint64(ev.id), int(ev.length))
		}
	}
	if code != 0 {
		e.fail(failure("MPI", code))
	}
	e.unlock()
	return n > 0
}

// unlock gives mu free, and tells what there is to tell.
func (e *engine) unlock() {
	if e.telling || len(e.news) == 0 {
		e.mu.Unlock()
		return
	}
	e.telling = true
	for len(e.news) > 0 {
		all := e.news
		e.news = nil
		e.mu.Unlock()
		for i := range all {
			if n := &all[i]; n.request != nil {
				n.request.Done.Completed(n.request)
			} else {
				n.to.Take(n.from, n.payload)
			}
		}
		e.mu.Lock()
	}
	e.telling = false
	e.mu.Unlock()
}

// end has r told that it has ended.
func (e *engine) end(r *transport.Request, err error) {
	r.Where, r.Err = nil, err
	e.news = append(e.news, news{request: r})
}

// came takes a packet.
func (e *engine) came(source int, packet []byte) {
	h, rest, err := decode(packet)
	if err != nil || source < 0 {
		e.fail(fmt.Errorf("packet from process %d: %w", source, err))
		return
	}
	if h.kind == accept {
		e.accepted(source, h)
		return
	}
	a := &arrival{head: h, source: source, bytes: rest}
	if s := e.sides[h.to]; s != nil {
		s.deliver(a)
	} else if _, gone := e.closed[h.to]; !gone {
		e.early[h.to] = append(e.early[h.to], a.kept())
	}
}

// offer tells a process of a message, for which b has the bytes.
func (e *engine) offer(to int, h *head, b *body) {
	e.lastID++
	h.kind, h.id = offer, e.lastID
	e.offers[h.id] = b
	e.send(to, h, nil)
}

// accepted sends the bytes that were offered. If the offer is over, a single byte
// less or more says so: the receive is posted, and has to end.
func (e *engine) accepted(source int, h head) {
	b := e.offers[h.id]
	delete(e.offers, h.id)
	switch {
	case b == nil && h.body != 0:
		e.move(source, h.body, &body{bytes: make([]byte, instead(h.length))})
	case b == nil:
	case h.body == 0:
		e.done(b)
	default:
		e.move(source, h.body, b)
	}
}

// instead is the length of what comes in place of so many bytes when their offer is
// over.
func instead(length int) int {
	if length == 0 {
		return 1
	}
	return 0
}

// take accepts an offer, and posts the receive for its bytes.
func (e *engine) take(a *arrival, b *body) {
	e.tags++
	tag := 1 + e.tags%bodyTags
	room := b.bytes
	if len(room) == 0 {
		room = make([]byte, instead(0))
	}
	b.arrival = a
	e.receive(a.source, tag, b, room)
	e.send(a.source, &head{kind: accept, to: a.head.to, id: a.head.id, body: tag, length: a.head.length}, nil)
}

// refuse ends an offer for its sender as if the bytes had come.
func (e *engine) refuse(a *arrival) {
	if a.head.kind == offer {
		e.send(a.source, &head{kind: accept, to: a.head.to, id: a.head.id}, nil)
	}
}

// send sends a packet to a process.
func (e *engine) send(to int, h *head, rest []byte) {
	b := h.encode()
	code := C.mx_send(C.int(to), unsafe.Pointer(&b[0]), C.int(len(b)), unsafe.Pointer(unsafe.SliceData(rest)), C.int(len(rest)))
	if code != 0 {
		e.fail(failure("send", code))
	}
}

// longest is how many bytes MPI is given at a time: it counts them in int.
const longest = 1 << 30

// move sends the bytes of a body.
func (e *engine) move(peer int, tag uint32, b *body) { e.begin(1, peer, tag, b, b.bytes) }

// receive receives them.
func (e *engine) receive(peer int, tag uint32, b *body, room []byte) { e.begin(0, peer, tag, b, room) }

func (e *engine) begin(send C.int, peer int, tag uint32, b *body, bytes []byte) {
	b.parts = max(1, (len(bytes)+longest-1)/longest)
	if len(bytes) > 0 {
		b.pin.Pin(&bytes[0])
	}
	for rest := bytes; ; {
		part := rest[:min(len(rest), longest)]
		rest = rest[len(part):]
		e.lastID++
		e.bodies[e.lastID] = b
		code := C.mx_body(send, C.int(peer), C.int(tag), unsafe.Pointer(unsafe.SliceData(part)), C.int(len(part)), C.uint64_t(e.lastID))
		if code != 0 {
			e.fail(failure("send or receive", code))
			return
		}
		if len(rest) == 0 {
			return
		}
	}
}

// ended takes note that a part of a body has left, or come with so many bytes.
func (e *engine) ended(id uint64, length int) {
	b := e.bodies[id]
	delete(e.bodies, id)
	b.lengths += length
	if b.parts--; b.parts == 0 {
		b.pin.Unpin()
		e.done(b)
	}
}

// done ends what a body was for.
func (e *engine) done(b *body) {
	s, a := b.side, b.arrival
	switch {
	case s == nil: // in place of one that was withdrawn
	case a == nil && b.request == nil: // a listener's has left
	case a == nil:
		delete(s.sending, b.request)
		e.end(b.request, nil)
	case a.head.listener:
		a.bytes, a.head.kind = b.bytes, whole
		s.handOn()
	case b.lengths != a.head.length: // its sender is in another epoch
		delete(s.receiving, b.request)
		if !s.match(b.request) {
			s.posted = slices.Insert(s.posted, 0, b.request)
		}
	default:
		delete(s.receiving, b.request)
		e.end(b.request, nil)
	}
}

// fail ends everything with an error of MPI.
func (e *engine) fail(err error) {
	if e.err != nil {
		return
	}
	e.err = err
	for _, s := range e.sides {
		for _, r := range s.posted {
			e.end(r, err)
		}
		s.posted = nil
	}
	for _, all := range []map[uint64]*body{e.offers, e.bodies} {
		for id, b := range all {
			delete(all, id)
			if r := b.request; r != nil && b.parts >= 0 {
				b.parts = -1
				e.end(r, err)
			}
		}
	}
}
