//go:build mpi

package mpi

// #cgo pkg-config: mpi
// #cgo noescape mx_send
// #cgo nocallback mx_send
// #cgo nocallback mx_poll
// #cgo nocallback mx_yield
// #include "shim.h"
import "C" // nowhere else: the shim's variables are static

import (
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
	latest     *side                   // that has got a packet; nil: look in sides
	arrival    arrival                 // the packet
	closed     [2]map[context]struct{} // the latest, and some before
	early      map[context][]*arrival  // for communicators that this rank has not made yet
	bodies     map[uint64]*body        // under way
	stillborn  []uint64                // of them, to or from the dead
	offers     map[uint64]*body        // of this process, not accepted so far
	lastID     uint64
	tags       uint32
	err        error // of MPI; nothing works after it
	mortal     bool
	killed     []bool // processes that MPI has lost
	losses     int
	fates      map[context]*fate

	// What is to be told when mu is free, in this order, by one goroutine at a time.
	news    []news
	told    []news // to be used again
	telling bool

	driving driving
	watched atomic.Int32 // goroutines that wait in other ways
	stop    chan struct{}
	idle    sync.WaitGroup // the goroutine that makes progress when nobody waits
}

// news is a request that has ended, or, for a listener, a message or a death.
type news struct {
	request *transport.Request
	to      transport.Listener
	from    int
	payload []byte
	died    bool
}

// body is a message's bytes that are to go, or to come, apart from its head.
type body struct {
	side    *side
	peer    int                // process
	request *transport.Request // nil: it is a listener's
	arrival *arrival           // that it is part of
	bytes   []byte
	parts   int // messages of MPI that have not ended
	lengths int // of those that have come
	lost    bool
	pin     runtime.Pinner
}

// Start begins to take part in the job. If it is to see processes die, MPI has to
// be one that does.
func Start(mortal bool) (*Job, error) {
	e := &engine{
		sides: make(map[context]*side), closed: [2]map[context]struct{}{{}, {}}, early: make(map[context][]*arrival),
		bodies: make(map[uint64]*body), offers: make(map[uint64]*body), fates: make(map[context]*fate),
		driving: newDriving(), stop: make(chan struct{}),
	}
	var rank, size, enough, ulfm, crowded C.int
	code := C.mx_start(&rank, &size, &enough, &ulfm, &crowded)
	switch {
	case code != 0:
		return nil, failure("MPI_Init_thread", code)
	case enough == 0:
		return nil, &transport.LibraryError{Call: "MPI_Init_thread",
			Text: library() + " can't be called from several threads, one at a time: it provides less than MPI_THREAD_SERIALIZED"}
	}
	if err := checkLaunch(int(size)); err != nil {
		return nil, err
	}
	if mortal && ulfm == 0 {
		return nil, noULFM()
	}
	e.rank, e.size, e.crowded = int(rank), int(size), crowded != 0
	e.mortal, e.killed = mortal, make([]bool, e.size)
	e.idle.Go(e.goOn)
	return &Job{e, e.newSide(world, e.fate(world), e.rank, nil, 0)}, nil
}

// A Job is an MPI job as one of its processes sees it.
type Job struct {
	engine *engine
	world  *side
}

// World is the communicator of all processes.
func (j *Job) World() transport.Comm { return j.world }

// Underway is how much MPI has of this process, once nothing moves: requests, and
// buffers that are pinned, but for the receives of packets.
func (j *Job) Underway() (n int) {
	e := j.engine
	for range 1000 {
		e.progress(1)
		e.mu.Lock()
		n = len(e.bodies) + len(e.offers) + int(C.mx_underway())
		e.mu.Unlock()
		if n == 0 {
			break
		}
	}
	return n
}

// End waits until all processes have called it, and ends MPI. Until then this one
// takes part in what the others still do.
func (j *Job) End() error {
	e := j.engine
	var mortal, lost C.int
	if e.mortal {
		mortal = 1
	}
	e.mu.Lock()
	code := C.mx_leave(mortal)
	e.mu.Unlock()
	var all C.int
	for code == 0 && all == 0 {
		e.progress(pollsBusy)
		if e.crowded {
			C.mx_yield()
		}
		e.mu.Lock()
		code = C.mx_left(&all)
		e.mu.Unlock()
	}
	close(e.stop)
	e.idle.Wait()
	if e.losses > 0 {
		lost = 1
	}
	if code == 0 {
		code = C.mx_stop(lost)
	}
	if code != 0 {
		return failure("MPI_Finalize", code)
	}
	return nil
}

const hasULFM = C.MX_ULFM != 0

const maxText = 1024

// failure is an error of MPI.
func failure(call string, code C.int) error {
	var text [maxText]C.char
	class := C.mx_error(code, &text[0], maxText)
	return &transport.LibraryError{Call: call, Class: int(class), Text: C.GoString(&text[0])}
}

// library says which MPI this is.
func library() string {
	var text [maxText]C.char
	C.mx_library(&text[0], maxText)
	return C.GoString(&text[0])
}

const (
	pollsBusy = 20                     // in one go, by a goroutine that waits
	briefly   = 50                     // times that it does so before it yields the core, some 100 µs
	period    = 500 * time.Microsecond // of progress when nobody waits
	hurry     = 20 * time.Microsecond  // when somebody does, but not in await
)

// goOn makes progress now and then, while nobody drives.
func (e *engine) goOn() {
	for {
		pause := period
		if e.watched.Load() > 0 {
			pause = hurry
		}
		select {
		case <-e.stop:
			return
		case <-time.After(pause):
		}
		if e.driving.try() {
			for e.progress(1) {
			}
			e.driving.end()
		}
	}
}

// await makes progress until it can receive from wake, or ended is closed, or lets
// another goroutine do so that is here already. While nothing happens it lets
// others have the core: other goroutines, and, where there are more ranks than
// cores, other processes.
func (e *engine) await(wake, ended <-chan struct{}) (woken bool) {
	for !e.driving.try() {
		select {
		case <-e.driving.free:
		case <-wake:
			return true
		case <-ended:
			return false
		}
	}
	defer e.driving.end()
	often := 64 // Gosched wakes a thread to look for work, if there is an idle core
	if runtime.GOMAXPROCS(0) == 1 {
		often = 4
	}
	for idle := 1; ; idle++ {
		select { // each alone takes no lock
		case <-wake:
			return true
		default:
		}
		select {
		case <-ended:
			return false
		default:
		}
		if e.progress(pollsBusy) {
			idle = 0
			continue
		}
		if idle%often == 0 {
			runtime.Gosched()
		}
		if e.crowded || idle > briefly {
			C.mx_yield()
		}
	}
}

// driving is who makes progress: one goroutine.
type driving struct {
	busy *atomic.Bool
	free chan struct{} // who waits may try again
}

func newDriving() driving { return driving{new(atomic.Bool), make(chan struct{}, 1)} }

func (d driving) try() bool { return !d.busy.Load() && d.busy.CompareAndSwap(false, true) }

func (d driving) end() {
	d.busy.Store(false)
	select {
	case d.free <- struct{}{}:
	default:
	}
}

// lock takes mu to begin something. Who makes progress all the time lets others have
// it first.
func (e *engine) lock() {
	if !e.mu.TryLock() {
		e.wanted.Add(1)
		e.mu.Lock()
		e.wanted.Add(-1)
	}
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
	n := C.mx_poll(C.int(polls))
	for i := range n {
		switch ev := &C.mx_events[i]; ev.kind {
		case C.MX_CAME:
			e.came(int(ev.source), unsafe.Slice((*byte)(ev.bytes), ev.length))
		case C.MX_BODY:
			e.ended(uint64(ev.id), int(ev.length), ev.lost != 0)
		}
	}
	if C.mx_code != 0 {
		e.fail(failure("MPI_Test", C.mx_code))
	}
	died := C.mx_news_of_death != 0
	if died {
		e.mourn()
	}
	for ; len(e.stillborn) > 0; n++ {
		id := e.stillborn[0]
		e.stillborn = e.stillborn[1:]
		e.ended(id, 0, true)
	}
	e.unlock()
	return n > 0 || died
}

// mourn asks MPI who has died.
func (e *engine) mourn() {
	ranks := make([]C.int, e.size)
	var n C.int
	if code := C.mx_failed(&ranks[0], C.int(e.size), &n); code != 0 {
		e.fail(failure("MPIX_Comm_get_failed", code))
		return
	}
	for _, p := range ranks[:n] {
		if !e.killed[p] {
			e.lose(int(p))
		}
	}
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
		e.news, e.told = e.told[:0], nil
		e.mu.Unlock()
		for i := range all {
			switch n := &all[i]; {
			case n.request != nil:
				n.request.Done.Completed(n.request)
			case n.died:
				n.to.Died(n.from)
			default:
				n.to.Take(n.from, n.payload)
			}
		}
		clear(all)
		e.mu.Lock()
		e.told = all
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
	switch {
	case h.kind == accept:
		e.accepted(source, h)
		return
	case h.kind == withdrawn:
		e.forget(source, h)
		return
	case h.kind > withdrawn:
		e.fated(source, h)
		return
	}
	e.arrival = arrival{head: h, source: source, bytes: rest}
	a := &e.arrival // until it is kept
	s := e.latest
	if s == nil || s.context != h.to {
		s = e.sides[h.to]
	}
	if s != nil {
		e.latest = s
		s.deliver(a)
	} else if !e.isClosed(h.to) {
		e.early[h.to] = append(e.early[h.to], a.kept())
	}
}

// remembered is how many closed communicators are, twice at most: nothing is under
// way to those before.
const remembered = 1 << 15

// close has what still comes for a communicator dropped.
func (e *engine) close(c context) {
	delete(e.sides, c)
	e.latest = nil
	if len(e.closed[0]) == remembered {
		e.closed = [2]map[context]struct{}{{}, e.closed[0]}
	}
	e.closed[0][c] = struct{}{}
}

func (e *engine) isClosed(c context) bool {
	_, gone := e.closed[0][c]
	if !gone {
		_, gone = e.closed[1][c]
	}
	return gone
}

// offer tells a process of a message, for which b has the bytes.
func (e *engine) offer(to int, h *head, b *body) {
	b.peer = to
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
		e.move(source, h.body, &body{bytes: make([]byte, instead(h.length))}, h.length)
	case b == nil:
	case h.body == 0:
		e.done(b)
	default:
		e.move(source, h.body, b, h.length)
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
	e.receive(a.source, tag, b, room, a.head.length)
	e.send(a.source, &head{kind: accept, to: a.head.to, id: a.head.id, body: tag, length: a.head.length}, nil)
}

// forget drops an offer that its sender has taken back. If it has been accepted, other
// bytes come in the place of its own.
func (e *engine) forget(source int, h head) {
	of := func(a *arrival) bool { return a.source == source && a.head.kind == offer && a.head.id == h.id }
	if s := e.sides[h.to]; s != nil {
		s.arrived = slices.DeleteFunc(s.arrived, of)
	} else if early := slices.DeleteFunc(e.early[h.to], of); len(early) > 0 {
		e.early[h.to] = early
	} else {
		delete(e.early, h.to)
	}
}

// refuse ends an offer for its sender as if the bytes had come.
func (e *engine) refuse(a *arrival) {
	if a.head.kind == offer {
		e.send(a.source, &head{kind: accept, to: a.head.to, id: a.head.id}, nil)
	}
}

// send sends a packet to a process.
func (e *engine) send(to int, h *head, rest []byte) {
	h.encode((*[headLength]byte)(unsafe.Pointer(&C.mx_head)))
	code := C.mx_send(C.int(to), unsafe.Pointer(unsafe.SliceData(rest)), C.int(len(rest)))
	if code != 0 {
		e.fail(failure("MPI_Isend", code))
	}
}

// longest is how many bytes MPI is given at a time: it counts them in int. Tests make
// it small, at all processes alike.
var longest = 1 << 30

// move sends the bytes of a body, or others in their place, in as many parts.
func (e *engine) move(peer int, tag uint32, b *body, length int) {
	e.begin(1, peer, tag, b, b.bytes, length)
}

// receive receives them.
func (e *engine) receive(peer int, tag uint32, b *body, room []byte, length int) {
	e.begin(0, peer, tag, b, room, length)
}

func (e *engine) begin(send C.int, peer int, tag uint32, b *body, bytes []byte, length int) {
	b.peer = peer
	b.parts = max(1, (length+longest-1)/longest)
	if len(bytes) > 0 {
		b.pin.Pin(&bytes[0])
	}
	rest := bytes
	for range b.parts {
		part := rest[:min(len(rest), longest)]
		rest = rest[len(part):]
		e.lastID++
		e.bodies[e.lastID] = b
		var lost C.int
		code := C.mx_body(send, C.int(peer), C.int(tag), unsafe.Pointer(unsafe.SliceData(part)), C.int(len(part)), C.uint64_t(e.lastID), &lost)
		if code != 0 {
			call := "MPI_Irecv"
			if send != 0 {
				call = "MPI_Isend"
			}
			e.fail(failure(call, code))
			return
		}
		if lost != 0 {
			e.stillborn = append(e.stillborn, e.lastID)
		}
	}
}

// ended takes note that a part of a body has left, or come with so many bytes.
func (e *engine) ended(id uint64, length int, lost bool) {
	b := e.bodies[id]
	delete(e.bodies, id)
	if b.parts < 0 {
		return // MPI has failed meanwhile
	}
	b.lengths += length
	b.lost = b.lost || lost
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
	case b.lost && b.request == nil: // a listener's
		if a != nil {
			s.inbox = slices.DeleteFunc(s.inbox, func(i *arrival) bool { return i == a })
			s.handOn()
		}
	case b.lost:
		delete(s.sending, b.request)
		delete(s.receiving, b.request)
		e.end(b.request, &transport.DeadError{Rank: s.rankIn(b.peer)})
	case a == nil && b.request == nil: // a listener's has left
	case a == nil:
		delete(s.sending, b.request)
		e.end(b.request, nil)
	case a.head.listener:
		a.bytes, a.head.kind = b.bytes, whole
		s.handOn()
	case b.lengths != a.head.length: // its sender is in another epoch, or has cancelled it
		cancelled := s.receiving[b.request]
		delete(s.receiving, b.request)
		if cancelled {
			e.end(b.request, transport.ErrCancelled)
		} else {
			s.matchOrPost(b.request)
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
	for _, b := range e.offers {
		e.abandon(b, err)
	}
	for _, b := range e.bodies { // they stay there, pinned: MPI may still have them
		e.abandon(b, err)
	}
	clear(e.offers)
}

func (e *engine) abandon(b *body, err error) {
	if b.request != nil && b.parts >= 0 {
		e.end(b.request, err)
	}
	b.parts = -1
}
