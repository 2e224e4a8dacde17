package detector

import (
	"encoding/binary"
	"fmt"
)

// A Kind says what a Message is.
type Kind byte

const (
	// Heartbeat says that the sender lives. It goes to the sender's observer once a period, and
	// answers a Ping.
	Heartbeat Kind = iota + 1
	// newObserver says that the sender observes the receiver from now on, and asks for a heartbeat
	// at once. All ranks between the two are dead, and the receiver has been told of these deaths.
	newObserver
	// Notice says that the ranks first to last are dead.
	Notice
	// answer tells a rank that the sender has declared it dead, and describes the sender's side.
	answer
	// Ping asks for a heartbeat at once. The watchman, the highest living rank, sends it to all
	// others.
	Ping
)

func (k Kind) String() string {
	if k < Heartbeat || k > Ping {
		return fmt.Sprintf("Kind(%d)", byte(k))
	}
	return [...]string{"heartbeat", "new observer", "notice", "answer", "ping"}[k-Heartbeat]
}

// A Message is sent from one rank to another.
type Message struct {
	Kind        Kind
	first, last int // of a Notice: the ranks first to last are dead; of an answer: see side; else 0
}

// A side describes one of the parts of a network that has fallen apart: the number of ranks that a
// rank does not know to be dead, and the lowest of them.
type side struct{ living, lowest int }

// lessThan says whether s falls silent when it meets t: it has fewer ranks than t, or as many and a
// higher lowest rank. A death makes a side less than it was, never greater.
func (s side) lessThan(t side) bool {
	return s.living < t.living || s.living == t.living && s.lowest > t.lowest
}

// answer returns the answer that describes s. first is one less than the number of living ranks, so
// that it is less than the size, like each rank.
func (s side) answer() Message { return Message{Kind: answer, first: s.living - 1, last: s.lowest} }

// side returns the side that an answer describes.
func (msg Message) side() side { return side{living: msg.first + 1, lowest: msg.last} }

// Size is the number of bytes of a message.
const Size = 9

// Encode returns msg as bytes: its kind in 1 byte, then first and last in 4 bytes each,
// little-endian.
func Encode(msg Message) [Size]byte {
	b := [Size]byte{byte(msg.Kind)}
	binary.LittleEndian.PutUint32(b[1:], uint32(msg.first))
	binary.LittleEndian.PutUint32(b[5:], uint32(msg.last))
	return b
}

// Decode returns the message in b, in a job of size ranks. It returns an error if Encode makes no
// such bytes of a valid message.
func Decode(b []byte, size int) (Message, error) {
	if len(b) != Size {
		return Message{}, fmt.Errorf("detector: message of %d bytes, expected %d", len(b), Size)
	}
	first, last := binary.LittleEndian.Uint32(b[1:]), binary.LittleEndian.Uint32(b[5:])
	msg := Message{Kind: Kind(b[0]), first: int(first), last: int(last)}
	if err := msg.check(size); err != nil {
		return Message{}, err
	}
	return msg, nil
}

// check returns an error if no rank of size ranks sends such a message.
func (msg Message) check(size int) error {
	switch greatest := max(uint(msg.first), uint(msg.last)); { // of less than 0: one that is too great
	case greatest >= uint(size):
		return fmt.Errorf("detector: rank %d in a message, expected less than %d", greatest, size)
	case msg.Kind < Heartbeat || msg.Kind > Ping:
		return fmt.Errorf("detector: message of kind %d, expected %d to %d", msg.Kind, Heartbeat, Ping)
	case msg.Kind == Notice && msg.first > msg.last:
		return fmt.Errorf("detector: notice of ranks %d to %d, expected an ascending range of 0 to %d", msg.first, msg.last, size-1)
	case msg.Kind != Notice && msg.Kind != answer && greatest > 0:
		return fmt.Errorf("detector: %v of ranks %d to %d, expected 0 to 0", msg.Kind, msg.first, msg.last)
	}
	return nil
}
