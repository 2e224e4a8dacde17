package ulfmbackend

import (
	"encoding/binary"
	"fmt"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Encode returns msg as bytes: its kind, and then, all numbers as varints,
//
//	notice:      round, corrupt, origin
//	revoke:      origin
//	up, decided: stream, epoch, number, calls, flag, dead ranks, whether all are
//	             acknowledged, those that are, reports
func Encode(msg *Message) []byte {
	b := make([]byte, 1, 32)
	b[0] = byte(msg.Kind)
	switch msg.Kind {
	case Notice:
		b = errchan.AppendTruth(binary.AppendUvarint(b, msg.ID.Seq), msg.Corrupt)
		return binary.AppendUvarint(b, uint64(msg.Origin))
	case Revoke:
		return binary.AppendUvarint(b, uint64(msg.Origin))
	case Up, Decided:
		b = append(b, byte(msg.Stream))
		b = binary.AppendUvarint(b, uint64(msg.ID.Epoch))
		b = binary.AppendUvarint(b, msg.ID.Seq)
		v := msg.Value
		b = append(b, byte(v.Calls))
		b = binary.AppendVarint(b, int64(v.Flag))
		b = errchan.AppendRanks(b, v.Dead)
		b = errchan.AppendTruth(b, v.AckAll)
		b = errchan.AppendRanks(b, v.Acked)
		b = errchan.AppendReports(b, v.Reports)
	}
	return b
}

// Decode returns the message in b, which nobody may change after: its reports'
// data are parts of it. The ranks of the communicator are 0 to size-1.
func Decode(b []byte, size int) (*Message, error) {
	d := errchan.NewReader(b)
	var msg *Message
	switch kind := Kind(d.Byte()); kind {
	case Notice:
		msg = &Message{Kind: kind}
		msg.ID.Seq, msg.Corrupt, msg.Origin = d.Uvarint(), d.Truth(), d.Below(size, "origin")
	case Revoke:
		msg = &Message{Kind: kind, Origin: d.Below(size, "origin")}
	case Up, Decided:
		k := Stream(d.Below(int(streams), "stream"))
		id := errchan.Agreement{Creates: k == Creations, Epoch: transport.Epoch(d.Uvarint()), Seq: d.Uvarint()}
		msg = newMessage(kind, k, id, Value{
			Calls: errchan.Calls(d.Byte()), Flag: int(d.Varint()), Dead: d.Ranks(size),
			AckAll: d.Truth(), Acked: d.Ranks(size), Reports: d.Reports(size),
		})
	case Ended:
		msg = &Message{Kind: kind}
	default:
		d.Fail(fmt.Errorf("no such kind of message: %v", kind))
	}
	if err := d.End(); err != nil {
		return nil, fmt.Errorf("message of %d bytes: %w", len(b), err)
	}
	msg.encoded = b
	return msg, nil
}

var shared [Ended + 1]errchan.Shared[Message]

// decodeShared is Decode, but what goes to all ranks unchanged is decoded once in
// a process.
func decodeShared(b []byte, size int) (*Message, error) {
	decode := func(b []byte) (*Message, error) { return Decode(b, size) }
	switch {
	case len(b) == 0:
	case b[0] == byte(Notice), b[0] == byte(Revoke), b[0] == byte(Decided):
		return shared[b[0]].Decode(b, decode)
	}
	return decode(b)
}
