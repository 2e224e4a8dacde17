package node

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"unsafe"
)

// The receiver of a long message from its own machine reads the bytes from the sender's memory, if
// the system lets it. Then they are copied once, where a pipe copies them twice.
//
// The offer says where the bytes are, and has a place in a table that both processes see. When the receiver begins
// to read, it claims the offer there, and in the end it says that it has read. In between the sender does not take
// the offer back. If it has done so before, there is nothing to claim.

// pullChunk is the most bytes that are read by one system call, with mu held.
const pullChunk = 512 << 10

// Pullable is the length of the shortest messages that are pulled where each process has a core. Tests make it
// small.
var Pullable = 48 << 10

// pullable says whether to pull a message of this length. Where processes share cores, shorter ones are worth it:
// with a pipe, both processes have to run in turn before the receiver has the bytes.
func (e *engine) pullable(length int) bool {
	if e.core.crowded {
		length *= 2
	}
	return length >= Pullable
}

// A cookie is random bytes in the memory of a process. A receiver that finds them reads the right
// process: process numbers are used again, and differ between namespaces.
type cookie [16]byte

func newCookie() *cookie {
	c := new(cookie)
	_, _ = rand.Read(c[:]) // it never fails
	return c
}

// origin is where the bytes of an offer are.
type origin struct {
	process       uint64
	address       uint64
	cookieAddress uint64
	cookie        cookie
	place         uint64 // of the offer
}

const originLength = 48

var pid = os.Getpid()

// origin returns the origin of an offer's bytes, encoded.
func (e *engine) origin(t *transfer) []byte {
	b := make([]byte, 0, originLength)
	for _, v := range []uint64{uint64(pid), addressOf(t.bytes), addressOf(e.cookie[:]), uint64(t.place)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return append(b, e.cookie[:]...)
}

func decodeOrigin(b []byte) (o origin) {
	o.process = binary.LittleEndian.Uint64(b[0:])
	o.address = binary.LittleEndian.Uint64(b[8:])
	o.cookieAddress = binary.LittleEndian.Uint64(b[16:])
	o.place = binary.LittleEndian.Uint64(b[24:])
	copy(o.cookie[:], b[32:])
	return o
}

// addressOf returns the address of bytes in the heap, where it does not change.
func addressOf(bytes []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))) }

// A pull is a transfer whose bytes this process reads from the sender's memory.
type pull struct {
	transfer *transfer
	tag      uint32
	from     origin
	read     int
}

// pullFrom begins to pull the bytes of a transfer, if its offer says where they are.
func (e *engine) pullFrom(o *outbox, tag uint32, t *transfer) bool {
	if o.hidden || len(t.arrival.bytes) != originLength {
		return false
	}
	e.pulls = append(e.pulls, pull{transfer: t, tag: tag, from: decodeOrigin(t.arrival.bytes)})
	return true
}

// pull reads the next bytes of the first pull.
func (e *engine) pull() {
	p := &e.pulls[0]
	lives := e.coming[p.tag] == p.transfer // the sender
	if lives && !e.pullMore(p) {
		return
	}
	e.pulls[0] = pull{}
	e.pulls = e.pulls[1:]
}

// pullMore reads the next bytes of a pull, and says whether it is over. If they can't be read, the sender has to
// send them; if it has taken the offer back, others come in their place.
func (e *engine) pullMore(p *pull) (over bool) {
	t := p.transfer
	if p.read == 0 && !e.from[t.peer].claims.Claim(p.from.place, t.arrival.header.id) {
		e.answer(accept, p.tag, t)
		return true
	}
	rest := t.bytes[p.read:]
	rest = rest[:min(len(rest), pullChunk)]
	ok, never := p.from.read(rest, p.read)
	p.read += len(rest)
	switch {
	case !ok:
		e.out[t.peer].hidden = never
		e.answer(accept, p.tag, t)
	case p.read == len(t.bytes):
		t.length = len(t.bytes)
		delete(e.coming, p.tag)
		e.answer(pulled, p.tag, t)
		e.done(t)
	default:
		return false
	}
	return true
}

// read reads bytes that are at this position of the message. If that does not succeed, never says
// that it never will.
func (o *origin) read(bytes []byte, at int) (ok, never bool) {
	var found cookie
	n, never := readMemory(int(o.process), found[:], o.cookieAddress, bytes, o.address+uint64(at))
	if n >= len(found) && found != o.cookie {
		return false, true
	}
	return n == len(found)+len(bytes), never
}

// answer answers the offer of a transfer.
func (e *engine) answer(k kind, tag uint32, t *transfer) {
	a := &t.arrival.header
	e.sendPacket(t.arrival.source, &header{kind: k, to: a.to, id: a.id, transferTag: tag, length: a.length}, nil)
}
