package blackchannel

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/wire"
)

// Encode returns msg as bytes: its kind, and then, all numbers as varints, its communicator, its
// round, and
//
//	notice:  corrupt
//	reports: how many, and for each rank, corrupt, length of data, data
//	verdict: the same as reports
//	stop:    the request
//	closed:  nothing
func Encode(msg *Message) []byte {
	b := binary.AppendUvarint([]byte{byte(msg.Kind)}, msg.Comm)
	b = binary.AppendUvarint(b, msg.Round)
	switch msg.Kind {
	case Notice:
		return wire.AppendBool(b, msg.Corrupt)
	case Verdict:
		return errchan.AppendReports(b, msg.Verdict.Reports)
	case Stop:
		return append(b, msg.Request...)
	case Closed:
		return b
	default:
		return errchan.AppendReports(b, msg.Reports)
	}
}

// Decode returns the message in b. The data of its reports are parts of b, so b must not be
// changed afterwards. The ranks of the communicator are below size.
func Decode(b []byte, size int) (*Message, error) {
	d := wire.NewReader(b)
	msg := &Message{Kind: Kind(d.Byte()), Comm: d.Uvarint(), Round: d.Uvarint(), encoded: b}
	switch msg.Kind {
	case Notice:
		msg.Corrupt = d.Bool()
	case Reports:
		msg.Reports = errchan.ReadReports(d, size)
	case Verdict:
		msg.Verdict = &errchan.Verdict{Round: msg.Round, Reports: errchan.ReadReports(d, size)}
		msg.Verdict.Corrupt = errchan.AnyCorrupt(msg.Verdict.Reports)
	case Stop:
		msg.Request = []byte(d.Rest())
	case Closed:
	default:
		d.Fail(errors.New("no such kind of message"))
	}
	// A reader that has failed returns zeros, so one check at the end is enough. It also finds
	// bytes that are left over.
	if err := d.End(); err != nil {
		return nil, fmt.Errorf("%v message of %d bytes: %w", msg.Kind, len(b), err)
	}
	return msg, nil
}

// Purpose names the purpose of a message: "revoke" announces an error, "resolve" finds the
// verdict, "stop" asks for a stop, "close" says that ranks have closed the communicator.
func (ch *Channel) Purpose(payload []byte) string {
	switch Kind(payload[0]) {
	case Notice:
		return "revoke"
	case Stop:
		return "stop"
	case Closed:
		return "close"
	}
	return "resolve"
}

// shared has the last message of each kind.
var shared [Closed + 1]wire.Shared[Message]

// A verdict may have a report of each rank, and is the same at all of them, as most other messages
// of a round are. Ranks of one process get the same slice, so only the first of them decodes it.
func decodeShared(b []byte, size int) (*Message, error) {
	decode := func(b []byte) (*Message, error) { return Decode(b, size) }
	if len(b) == 0 || int(b[0]) >= len(shared) {
		return decode(b)
	}
	return shared[b[0]].Decode(b, decode)
}
