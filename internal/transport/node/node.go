package node

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/bell"
	"github.com/mpicx/go-mpicx/internal/record"
	"github.com/mpicx/go-mpicx/internal/ring"
)

// node is the memory that this process shares with the other processes of its machine. From each
// process to each there is a ring of packets and a table of offers. A packet arrives after some
// 100 ns, without a system call. Short messages arrive sooner through it, copied twice on two
// cores, than if the system copied them from one process to the other. It is part of the engine,
// whose mu protects it. Other processes can write to all of it, and a faulty one may. So whatever
// this process reads there, positions of rings included, is checked before it is used, and what it
// has to rely on is in fields of its own.
type node struct {
	in   []*inbox  // of the processes that this one shares memory with, itself included
	from []*inbox  // the same, by process; nil: no shared memory
	out  []*outbox // by process; nil: no shared memory, or dead. Then the fabric is used.
	// lagging is the number of packets in all backlogs, plus the number of all remainders.
	lagging int
	bell    atomic.Pointer[bell.Bell] // this process's own; nil: no shared memory; read without mu
	limit   int                       // length of the longest eager message through a ring: nearLimit, or less
	chunk   int                       // the most bytes of a transfer that are in one packet
	record  record.Record             // of this process's collective calls; other processes only read it
	records [][]byte                  // the memory of the records, by process; nil: no shared memory
}

// An inbox is the reader's end of the memory in which one process sends to this one.
type inbox struct {
	ring.Reader
	claims  ring.Claims
	process int // the sender
}

// An outbox is the writer's end of the memory in which this process sends to one other.
type outbox struct {
	ring.Writer
	offers ring.Offers
	bell   bell.Bell // of the other process: to ring when a packet is in its ring
	// backlog are packets for which there was no room in the ring, in order. While there are any,
	// later packets are appended.
	backlog [][]byte
	// remainders are the transfers through the ring, in order. Only the first is partly sent.
	remainders []remainder
	hidden     bool // this process can't read the memory of the other one: see pull
}

// A remainder is a transfer through a ring that is not completely sent.
type remainder struct {
	transfer *transfer
	tag      uint32
	rest     []byte // the bytes not sent so far
	total    int    // the number of all bytes
}

// Limits of the memory that the processes of a machine share, in bytes.
const (
	mostShared = 16 << 20
	many       = 64       // more processes than these have the smallest possible rings
	mostRoom   = 64 << 10 // of a ring
	leastRoom  = 8 << 10  // of a ring, up to many processes
	roomOfMany = 2 << 10  // of a ring, for more processes
)

// MostNeighbours is the greatest number of processes that share memory. There is a limit because
// each process looks for packets of each other one.
const MostNeighbours = 128

// ringRoom returns the size of a ring if n processes share memory.
func ringRoom(n int) int {
	if n > many {
		return roomOfMany
	}
	room := mostRoom
	for room > leastRoom && n*n*room > mostShared {
		room /= 2
	}
	return room
}

// MemorySize returns the size of the memory that n processes share.
func MemorySize(n int) int { return n*(bell.Size+record.Size) + n*n*oneWay(ringRoom(n)) }

// WakeAll wakes all of n processes that sleep, whose shared memory this is.
func WakeAll(memory []byte, n int) {
	for i := range n {
		mine := bell.New(memory[i*bell.Size:])
		mine.Wake()
	}
}

// oneWay returns the size of the memory in which one process sends to another, with rings of this
// room.
func oneWay(room int) int { return ring.Size(room) + ring.OffersSize }

func newInbox(shared []byte, room, process int) *inbox {
	offers := ring.Size(room)
	return &inbox{ring.NewReader(shared[:offers]), ring.NewClaims(shared[offers:]), process}
}

func newOutbox(shared []byte, room int, b bell.Bell) *outbox {
	offers := ring.Size(room)
	return &outbox{Writer: ring.NewWriter(shared[:offers]), offers: ring.NewOffers(shared[offers:]), bell: b}
}

// End sends the packet that Begin has begun, of n bytes, and wakes the process if it sleeps. The
// packet is complete before the bell rings. So the other process finds it when it looks once more
// before it sleeps: see package bell.
func (o *outbox) End(n int) {
	o.Writer.End(n)
	o.bell.Ring()
}

// share makes the inboxes and outboxes in the memory that the neighbours share. If memory is nil,
// the fabric carries everything.
func (e *engine) share(near []int, memory []byte, marks []*uint32) {
	e.from, e.out, e.records = make([]*inbox, e.size), make([]*outbox, e.size), make([][]byte, e.size)
	if memory == nil {
		return
	}
	// The memory has a bell for each process, and a record for each. Then, for each pair of a
	// reader and a writer, it has what one sends to the other. All processes compute the same
	// places, because near has the same order at all.
	n, me := len(near), slices.Index(near, e.rank)
	room := ringRoom(n)
	size := oneWay(room)
	bells, memory := memory[:n*bell.Size], memory[n*bell.Size:]
	records, memory := memory[:n*record.Size], memory[n*record.Size:]
	e.record = record.In(records[me*record.Size:])
	mine := bell.New(bells[me*bell.Size:])
	mine.Watch(marks)
	e.bell.Store(&mine)
	e.chunk = ring.Longest(room) - headerLength
	e.limit = min(nearLimit, e.chunk)
	// This process is among them: what it sends to itself takes the same way as any other packet,
	// in the same order.
	for i, p := range near {
		e.records[p] = records[i*record.Size:][:record.Size]
		from, to := memory[(i*n+me)*size:][:size], memory[(me*n+i)*size:][:size]
		e.from[p] = newInbox(from, room, p)
		e.in = append(e.in, e.from[p])
		e.out[p] = newOutbox(to, room, bell.New(bells[i*bell.Size:]))
	}
}

// eager returns the length of the longest eager message to a process. The fabric carries what is
// sent to a neighbour that has died, or that shares no memory with this process.
func (e *engine) eager(process int) int {
	switch {
	case e.out[process] != nil:
		return e.limit
	case e.machines[process] != e.machines[e.rank]:
		return e.far
	}
	return farLimit
}

// sendNear sends a packet through the ring, or appends it to the backlog if there is no room.
func (e *engine) sendNear(o *outbox, h *header, rest []byte) {
	begin := h.encodedLength()
	n := begin + len(rest)
	var packet []byte
	// A packet that does not wait must not overtake those that do (F5).
	if len(o.backlog) == 0 {
		packet = e.beginPacket(o, n)
	}
	lags := packet == nil
	// Usually the packet is written where its reader finds it. Only without room it is copied
	// twice.
	if lags {
		packet = make([]byte, n)
	}
	h.encode(packet)
	copy(packet[begin:], rest)
	if lags {
		o.backlog = append(o.backlog, packet)
		// The other process rings no bell when it has made room, so goOn must not sleep for long.
		e.lagging++
		e.ring()
	} else {
		o.End(n)
	}
}

// beginPacket returns n bytes in the ring for the next packet to a neighbour, or nil if there is no
// room. An error means that the reader's position, which the reader writes, is impossible.
func (e *engine) beginPacket(o *outbox, n int) []byte {
	packet, err := o.Begin(n)
	if err != nil {
		e.fail(err)
	}
	return packet
}

// catchUp sends what there was no room for: packets of backlogs, and parts of remainders. It says
// whether it could send any.
func (e *engine) catchUp() (moved bool) {
	for _, o := range e.out {
		for o != nil && len(o.backlog) > 0 {
			packet := o.backlog[0]
			room := e.beginPacket(o, len(packet))
			if room == nil {
				break
			}
			copy(room, packet)
			o.End(len(packet))
			o.backlog = o.backlog[1:]
			e.lagging--
			moved = true
		}
		if o != nil && e.push(o) {
			moved = true
		}
	}
	return moved
}

// push sends the remainders of an outbox, as far as there is room, and says whether it could send
// any bytes. It sends nothing while there is a backlog. Later packets may overtake the parts. That
// changes no order: a message has its place by its offer.
func (e *engine) push(o *outbox) (moved bool) {
	for len(o.remainders) > 0 && len(o.backlog) == 0 {
		s := &o.remainders[0]
		n := min(e.chunk, len(s.rest))
		packet := e.beginPacket(o, headerLength+n)
		if packet == nil {
			break
		}
		h := header{kind: part, transferTag: s.tag, length: s.total}
		h.encode(packet)
		copy(packet[headerLength:], s.rest)
		o.End(headerLength + n)
		moved = true
		if s.rest = s.rest[n:]; len(s.rest) == 0 {
			// The ring has a copy of all bytes, so the sender's buffer is free (F4).
			t := s.transfer
			o.remainders[0] = remainder{}
			o.remainders = o.remainders[1:]
			e.lagging--
			e.done(t)
		}
	}
	return moved
}

// takePart takes the next bytes of a transfer. If their total differs from the length of the offer,
// the sender has taken the offer back: see accepted. The sender states the total and the bytes.
// Both are compared with the offer that was accepted, so nothing is written past the receiver's
// buffer, and a transfer can end only once.
func (e *engine) takePart(source int, h header, bytes []byte) error {
	t := e.coming[h.transferTag]
	switch {
	case e.dead[source]: // its transfers are over
		return nil
	case t == nil || t.peer != source:
		return fmt.Errorf("bytes of transfer %d, which is not under way", h.transferTag)
	case h.length != t.arrival.header.length && h.length != withdrawnLength(t.arrival.header.length),
		h.length < t.length || len(bytes) > h.length-t.length, len(bytes) == 0 && h.length > 0:
		return fmt.Errorf("%d bytes of %d after %d, expected %d in all", len(bytes), h.length, t.length, t.arrival.header.length)
	}
	// The room is smaller than the message only if one byte comes in place of none: see
	// withdrawnLength.
	copy(t.bytes[min(t.length, len(t.bytes)):], bytes)
	if t.length += len(bytes); t.length == h.length {
		delete(e.coming, h.transferTag)
		e.done(t)
	}
	return nil
}

// look takes at most one packet of each neighbour, and says whether there was any. While nothing
// comes, this costs one load for each neighbour. That is why the number of neighbours has a limit.
func (e *engine) look() (came bool) {
	for _, in := range e.in {
		if in.Ready() && e.lookAt(in) {
			came = true
		}
	}
	return came
}

// lookAt takes the next packet of a neighbour, and says whether there was one.
func (e *engine) lookAt(in *inbox) (took bool) {
	took, err := e.takeFrom(in)
	if err != nil {
		e.garbage(in.process, err)
	}
	return took
}

// takeFrom takes the next packet of a neighbour, and says whether there was one.
func (e *engine) takeFrom(in *inbox) (took bool, err error) {
	packet, err := in.Read()
	if packet == nil || e.err != nil {
		return false, err
	}
	// Only after this is the memory of the packet the sender's again. take copies what is needed
	// longer.
	err = e.take(in.process, packet)
	in.Done(len(packet))
	return true, err
}

// lastOf takes all packets that a dead neighbour has sent, up to the first that is garbage. It then
// ends the transfers from and to it, and drops its outbox, so nothing more is sent to it through
// memory.
func (e *engine) lastOf(process int) {
	o := e.out[process]
	if o == nil {
		return
	}
	// What the process had sent when it died was sent, and may be received. A packet that it was
	// writing is not there for the reader.
	for n, took, err := 0, true, error(nil); n < lastPackets && took && err == nil; n++ {
		took, err = e.takeFrom(e.from[process])
	}
	// From now on sendPacket uses the fabric, for the heart, which tells a process that lives that
	// it was declared dead.
	e.out[process] = nil
	e.lagging -= len(o.backlog) + len(o.remainders)
	var dead []*transfer
	for _, s := range o.remainders {
		dead = append(dead, s.transfer)
	}
	for tag, t := range e.coming {
		if t.peer == process {
			delete(e.coming, tag)
			dead = append(dead, t)
		}
	}
	for _, t := range dead {
		t.dead = true
		e.done(t)
	}
}
