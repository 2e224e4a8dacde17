package ulfmbackend

import (
	"encoding/binary"
	"fmt"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/wire"
)

// Encode returns msg as bytes: its kind, and then, all numbers as varints, its number, corrupt,
// origin, the request if it is a Stop, and, if it has a value,
//
//	stream, vote or tree (if a library votes, otherwise 0), epoch, calls, flag, dead ranks, whether
//	all ranks are acknowledged, the acknowledged ranks, length of the note, the note, reports, the
//	index of each, how many are settled, and for each of these: communicator, epoch, whether it
//	creates, number, whether it is decided, and if so: the rank that decided, calls, flag, dead
//	ranks, dead ranks that are not acknowledged, length of the note, the note
func Encode(msg *Message) []byte {
	b := make([]byte, 1, 32)
	b[0] = byte(msg.Kind)
	b = wire.AppendBool(binary.AppendUvarint(b, msg.ID.Seq), msg.Corrupt)
	b = binary.AppendUvarint(b, uint64(msg.Origin))
	v := msg.Value
	if v == nil {
		return append(b, msg.Request...)
	}
	b = binary.AppendUvarint(append(b, byte(msg.Stream)), msg.vote)
	b = binary.AppendUvarint(b, uint64(msg.ID.Epoch))
	b = binary.AppendUvarint(b, uint64(v.Calls))
	b = binary.AppendVarint(b, int64(v.Flag))
	b = wire.AppendRanks(b, v.Dead)
	b = wire.AppendBool(b, v.AckAll)
	b = wire.AppendRanks(b, v.Acked)
	b = errchan.AppendReports(wire.AppendBytes(b, v.Note), v.Reports)
	for _, r := range v.Reports {
		b = binary.AppendUvarint(b, uint64(r.Index))
	}
	return appendSettled(b, v.Settled)
}

func appendSettled(b []byte, settled []errchan.Settled) []byte {
	b = binary.AppendUvarint(b, uint64(len(settled)))
	for _, s := range settled {
		b = binary.AppendUvarint(b, s.Comm)
		b = binary.AppendUvarint(b, uint64(s.ID.Epoch))
		b = wire.AppendBool(b, s.ID.Creates)
		b = binary.AppendUvarint(b, s.ID.Seq)
		d := s.Decision
		if b = wire.AppendBool(b, d != nil); d == nil {
			continue
		}
		b = binary.AppendUvarint(b, uint64(s.By))
		b = binary.AppendUvarint(b, uint64(d.Calls))
		b = binary.AppendVarint(b, int64(d.Flag))
		b = wire.AppendRanks(b, d.Dead)
		b = wire.AppendBytes(wire.AppendRanks(b, d.Unacked), d.Note)
	}
	return b
}

// Decode returns the message in b. The data of its reports are parts of b, so b must
// not be changed afterwards. The ranks of the communicator are below size.
func Decode(b []byte, size int) (*Message, error) {
	d := wire.NewReader(b)
	kind := Kind(d.Byte())
	seq, corrupt, origin := d.Uvarint(), d.Bool(), d.Below(size, "root")
	msg := &Message{Kind: kind, ID: errchan.Agreement{Seq: seq}}
	switch kind {
	case Notice, Revoke:
	case Stop:
		msg.Request = []byte(d.Rest())
	case Up, Decided:
		k, vote := Stream(d.Below(int(streams), "stream")), d.Uvarint()
		id := errchan.Agreement{Creates: k == Creations, Epoch: transport.Epoch(d.Uvarint()), Seq: seq}
		v := Value{Calls: readCalls(d), Flag: int(d.Varint()), Dead: d.Ranks(size), AckAll: d.Bool(), Acked: d.Ranks(size)}
		v.Note, v.Reports = d.Bytes(), errchan.ReadReports(d, size)
		readIndices(d, v.Reports)
		v.Settled = readSettled(d, size)
		msg = newMessage(kind, k, id, v)
		msg.vote = vote
	default:
		d.Fail(fmt.Errorf("no such kind of message: %v", kind))
	}
	msg.Corrupt, msg.Origin = corrupt, origin
	if err := d.End(); err != nil {
		return nil, fmt.Errorf("message of %d bytes: %w", len(b), err)
	}
	msg.encoded = b
	return msg, nil
}

func readCalls(d *wire.Reader) errchan.Calls {
	return errchan.Calls(d.Below(int(errchan.AnyCalls)+1, "calls"))
}

// readIndices reads the indices of reports. Those of one rank ascend.
func readIndices(d *wire.Reader, reports []errchan.Report) {
	for i := range reports {
		r := &reports[i]
		r.Index = d.Below(maxReports, "index of a report")
		if i == 0 {
			continue
		}
		switch last := &reports[i-1]; {
		case r.Rank < last.Rank:
			d.Fail(fmt.Errorf("a report of rank %d, expected one of rank %d or above", r.Rank, last.Rank))
		case r.Rank == last.Rank && r.Index <= last.Index:
			d.Fail(fmt.Errorf("index %d of a report of rank %d, expected at least %d", r.Index, r.Rank, last.Index+1))
		}
	}
}

// maxReports is how many reports a rank may raise in one round.
const maxReports = 1<<31 - 1

// readSettled reads what appendSettled wrote, of communicators of up to size ranks.
func readSettled(d *wire.Reader, size int) []errchan.Settled {
	const shortest = 5 // bytes of one
	n := d.Below(d.Len()/shortest+1, "number of settled agreements")
	if n == 0 {
		return nil
	}
	settled := make([]errchan.Settled, 0, n)
	for i := range n {
		s := errchan.Settled{Comm: d.Uvarint()}
		s.ID = errchan.Agreement{Epoch: transport.Epoch(d.Uvarint()), Creates: d.Bool(), Seq: d.Uvarint()}
		if d.Bool() {
			s.By = d.Below(size, "root")
			s.Decision = errchan.Decision{
				Calls: readCalls(d), Flag: int(d.Varint()), Dead: d.Ranks(size), Unacked: d.Ranks(size), Note: d.Bytes(),
			}.Shared()
			for _, r := range s.Decision.Unacked {
				if !contains(s.Decision.Dead, r) {
					d.Fail(fmt.Errorf("rank %d is not acknowledged, expected one of the dead, %v", r, s.Decision.Dead))
				}
			}
		}
		if i > 0 && compareSettled(settled[i-1], s) >= 0 {
			d.Fail(fmt.Errorf("agreement %+v of communicator %x is settled after %+v of %x, expected a later one",
				s.ID, s.Comm, settled[i-1].ID, settled[i-1].Comm))
		}
		if d.Failed() {
			return nil
		}
		settled = append(settled, s)
	}
	return settled
}

var shared [Decided + 1]wire.Shared[Message]

// decodeShared is Decode, but a message that goes to all ranks unchanged is decoded once in
// each process.
func decodeShared(b []byte, size int) (*Message, error) {
	decode := func(b []byte) (*Message, error) { return Decode(b, size) }
	if len(b) == 0 || b[0] > byte(Decided) || b[0] == byte(Up) {
		return decode(b)
	}
	return shared[b[0]].Decode(b, decode)
}
