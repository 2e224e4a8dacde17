package node

import (
	"encoding/binary"
	"os"
	"unsafe"
)

// The receiver of a long message from its own machine reads (pulls) the bytes from the sender's
// memory, if the system allows it. So the bytes are copied only once. Through a ring they are
// copied twice.
//
// The offer says where the bytes are, and has a place in a table in shared memory. Before the
// receiver begins to read, it claims the offer in the table. When it has read all bytes it answers
// pulled. In between, the sender cannot take the offer back, so the buffer stays valid. If the
// sender has taken it back before, the claim fails.

// pullChunk is the most bytes that one system call reads, because mu is held meanwhile.
const pullChunk = 512 << 10

// Pullable is the length of the shortest messages that are pulled where each process has a core.
// Tests make it small.
var Pullable = 48 << 10

// pullable says whether to pull a message of this length. If processes share cores, shorter
// messages are pulled too: through a ring, both processes would have to run in turn.
func (e *engine) pullable(length int) bool {
	if e.core.crowded {
		length *= 2
	}
	return length >= Pullable
}

// A cookie is random bytes in the memory of a process. By reading them too, a receiver makes sure
// that it reads the right process: process ids are reused, and differ between namespaces.
type cookie [16]byte

// origin says where the bytes of an offer are. It is sent with the offer.
type origin struct {
	process       uint64 // the sender's process id
	address       uint64 // of the bytes, in the sender's memory
	cookieAddress uint64 // of the sender's cookie
	cookie        cookie // the bytes that have to be found there
	place         uint64 // of the offer, in the table of offers
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

// A pull is a transfer to this process whose bytes it reads from the sender's memory.
type pull struct {
	transfer *transfer
	tag      uint32 // of the transfer, in coming
	from     origin
	read     int // bytes read so far; 0: the offer is not claimed yet
}

// pullFrom begins to pull the bytes of a transfer. It returns false if the offer does not say where
// they are, or this process can't read that memory.
func (e *engine) pullFrom(o *outbox, tag uint32, t *transfer) bool {
	if o.hidden || len(t.arrival.bytes) != originLength {
		return false
	}
	e.pulls = append(e.pulls, pull{transfer: t, tag: tag, from: decodeOrigin(t.arrival.bytes)})
	e.ring()
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

// pullMore reads the next bytes of a pull, and says whether the pull is over. If they can't be
// read, it accepts the offer, so the sender sends them through the ring. It does the same if the
// sender has taken the offer back; then other bytes come in their place (see accepted).
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

// read reads the bytes of the message from position at. If ok is false, never says that other reads
// from this process will fail too.
func (o *origin) read(bytes []byte, at int) (ok, never bool) {
	var found cookie
	n, never := readMemory(int(o.process), found[:], o.cookieAddress, bytes, o.address+uint64(at))
	if n >= len(found) && found != o.cookie {
		return false, true
	}
	return n == len(found)+len(bytes), never
}

// answer answers the offer of a transfer with a packet of kind accept or pulled.
func (e *engine) answer(k kind, tag uint32, t *transfer) {
	a := &t.arrival.header
	e.sendPacket(t.arrival.source, &header{kind: k, to: a.to, id: a.id, transferTag: tag, length: a.length}, nil)
}
