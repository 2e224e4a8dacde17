package node

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A contextID identifies a communicator, the same at all its members. It is a hash of how it was
// made.
type contextID uint64

// world is the context of the communicator of all processes.
const world contextID = 1

// child returns the context of a communicator made from this one.
func (c contextID) child(n transport.Name) contextID { return contextID(n.Digest(uint64(c))) }

// kind says what a packet is.
type kind byte

const (
	// whole is an eager message: its bytes follow the header.
	whole kind = iota + 1
	// offer is a message without its bytes, which the sender has ready.
	offer
	// accept answers an offer: the sender shall send the bytes with transferTag or, if that is 0,
	// shall not send them.
	accept
	// part has the next bytes of an accepted message.
	part
	// withdrawn takes an offer back. The receiver may have accepted it meanwhile.
	withdrawn
	// pulled answers an offer instead of accept: the receiver has read the bytes from the sender's
	// memory.
	pulled
	// credit tells a process how many of its messages have been received: see lead.
	credit
	// reminder tells which call the sender waits in.
	reminder
	// left says that the program of the process has ended: see liveness.
	left
	// need tells a process that the sender waits for it. Without a family, it is for a process that
	// has released the communicator; else for one that has left.
	need
	// gone answers a need, or a reminder. With a tag, the sender has released the communicator, and
	// the tag is that of the latest call that it has made. Else it has left, which it answers if
	// processes are not mortal.
	gone
	// dead says that the sender has expired: see liveness.
	dead
	// beat is a message of package detector.
	beat
	// ask asks whether a process of the receiver's machine lives; vouch answers that it does.
	ask
	vouch
)

// A header is the beginning of a packet.
type header struct {
	kind        kind
	listener    bool      // the message is for the listener
	transferTag uint32    // of accept, pulled and part: the tag of the transfer
	to          contextID // the communicator; of left and dead: the family
	epoch       transport.Epoch
	tag         int
	signature   signature.Word
	// length is the length of the message in bytes; of a part: of all parts; of a credit: of all
	// messages that it is for. Need and reminder: the id of the sender's latest offer, which gone
	// repeats.
	length int
	// id depends on the kind. Offer, withdrawn, accept, pulled: the id that the offer has at its
	// sender. Credit: the number of messages. Need: the family. Ask and vouch: the process.
	id uint64
}

// The header of a whole message is encoded without length and id. A short message therefore shares
// a cache line of the ring with its header: a second line would take as long as the first.
const (
	wholeLength  = 40
	headerLength = 56 // of all other packets
)

// encodedLength returns the number of bytes of the encoded header.
func (h *header) encodedLength() int {
	if h.kind == whole {
		return wholeLength
	}
	return headerLength
}

// longestMessage is the greatest length for which there are addresses.
const longestMessage = min(math.MaxInt, 1<<47)

// encode stores the header in its encodedLength bytes.
func (h *header) encode(b []byte) {
	_ = b[wholeLength-1]
	binary.LittleEndian.PutUint64(b[0:], uint64(h.to))
	binary.LittleEndian.PutUint64(b[8:], uint64(h.epoch))
	binary.LittleEndian.PutUint64(b[16:], uint64(int64(h.tag)))
	binary.LittleEndian.PutUint64(b[24:], uint64(h.signature))
	binary.LittleEndian.PutUint32(b[32:], h.transferTag)
	b[36], b[37] = byte(h.kind), 0
	if h.listener {
		b[37] = 1
	}
	if h.kind != whole {
		binary.LittleEndian.PutUint64(b[40:], uint64(h.length))
		binary.LittleEndian.PutUint64(b[48:], h.id)
	}
}

// decode sets h to the header of a packet, and returns the rest.
func (h *header) decode(packet []byte) (rest []byte, err error) {
	if len(packet) < wholeLength {
		return nil, fmt.Errorf("%d bytes, expected %d or more", len(packet), wholeLength)
	}
	h.to = contextID(binary.LittleEndian.Uint64(packet[0:]))
	h.epoch = transport.Epoch(binary.LittleEndian.Uint64(packet[8:]))
	h.tag = int(int64(binary.LittleEndian.Uint64(packet[16:])))
	h.signature = signature.Word(binary.LittleEndian.Uint64(packet[24:]))
	h.transferTag = binary.LittleEndian.Uint32(packet[32:])
	h.kind = kind(packet[36])
	h.listener = packet[37] == 1
	if h.kind == whole {
		rest = packet[wholeLength:]
		h.length, h.id = len(rest), 0
		return rest, nil
	}
	switch {
	case h.kind < whole || h.kind > vouch:
		return nil, fmt.Errorf("kind %d", h.kind)
	case len(packet) < headerLength:
		return nil, fmt.Errorf("%d bytes, expected %d or more", len(packet), headerLength)
	}
	h.length, h.id = int(binary.LittleEndian.Uint64(packet[40:])), binary.LittleEndian.Uint64(packet[48:])
	if h.length < 0 || h.length > longestMessage {
		return nil, fmt.Errorf("a message of %d bytes, expected 0 to %d", h.length, longestMessage)
	}
	return packet[headerLength:], nil
}
