package diagnosis

import (
	"encoding/binary"
	"fmt"

	"github.com/mpicx/go-mpicx/internal/wire"
)

// mark is the first byte of a message. It distinguishes it from messages of error channels.
const mark = 0xd1

// maxText is the greatest length of a rank's text, in bytes.
const maxText = 2048

// IsMessage says whether b is a message of this package rather than of the error channel.
func IsMessage(b []byte) bool { return len(b) > 0 && b[0] == mark }

// Encode returns msg as bytes: the mark, whether it is an answer, and then, all numbers as
// varints,
//
//	origin, number
//	question:  why, alone
//	answer:    rival + 1; how many groups, and for each its text and its ranks
func Encode(msg *Message) []byte {
	b := wire.AppendBool([]byte{mark}, msg.Said != nil)
	b = binary.AppendUvarint(b, uint64(msg.Origin))
	b = binary.AppendUvarint(b, msg.Number)
	if msg.Said == nil {
		return wire.AppendBool(append(b, byte(msg.Why)), msg.Alone)
	}
	b = binary.AppendUvarint(b, uint64(msg.Rival+1))
	groups := Grouped(msg.Said)
	b = binary.AppendUvarint(b, uint64(len(groups)))
	for _, g := range groups {
		b = wire.AppendBytes(b, g.Text[:min(len(g.Text), maxText)])
		b = wire.AppendRanks(b, g.Ranks)
	}
	return b
}

// Decode returns the message in b. The ranks are below size.
func Decode(b []byte, size int) (*Message, error) {
	d := wire.NewReader(b[1:])
	answer := d.Bool()
	msg := &Message{Origin: d.Below(size, "origin"), Number: d.Uvarint(), Rival: -1}
	if answer {
		msg.Rival = d.Below(size+1, "rival") - 1
		msg.Said = make(map[int]string)
		for range d.Below(size+1, "number of groups") {
			text := d.Text()
			for _, r := range d.Ranks(size) {
				msg.Said[r] = text
			}
		}
	} else {
		msg.Why, msg.Alone = Why(d.Below(int(reasons), "reason")), d.Bool()
	}
	if err := d.End(); err != nil {
		return nil, fmt.Errorf("message of a diagnosis, %d bytes: %w", len(b), err)
	}
	return msg, nil
}
