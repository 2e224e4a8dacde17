package blackchannel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// MaxData is the longest data of one report, in bytes.
const MaxData = 4096

// Encode returns msg as bytes: its kind, its round, and then, all numbers as
// varints,
//
//	notice:  corrupt
//	reports: how many, and for each rank, corrupt, length of data, data
//	verdict: the same as reports
func Encode(msg *Message) []byte {
	b := []byte{byte(msg.Kind)}
	b = binary.AppendUvarint(b, msg.Round)
	switch msg.Kind {
	case Notice:
		return append(b, truth(msg.Corrupt))
	case Verdict:
		return appendReports(b, msg.Verdict.Reports)
	default:
		return appendReports(b, msg.Reports)
	}
}

func appendReports(b []byte, reports []errchan.Report) []byte {
	b = binary.AppendUvarint(b, uint64(len(reports)))
	for _, r := range reports {
		b = binary.AppendUvarint(b, uint64(r.Rank))
		b = append(b, truth(r.Corrupt))
		b = binary.AppendUvarint(b, uint64(len(r.Data)))
		b = append(b, r.Data...)
	}
	return b
}

func truth(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Decode returns the message in b, which nobody may change after: the data of
// its reports are parts of it. The ranks of the communicator are 0 to size-1.
func Decode(b []byte, size int) (*Message, error) {
	d := decoder{b: b}
	msg := &Message{Kind: Kind(d.byte()), Round: d.uvarint()}
	switch msg.Kind {
	case Notice:
		msg.Corrupt = d.truth()
	case Reports:
		msg.Reports = d.reports(size)
	case Verdict:
		msg.Verdict = &errchan.Verdict{Round: msg.Round, Reports: d.reports(size)}
		msg.Verdict.Corrupt = anyCorrupt(msg.Verdict.Reports)
	default:
		d.fail(errors.New("no such kind of message"))
	}
	if d.err == nil && len(d.b) > 0 {
		d.fail(fmt.Errorf("%d bytes follow the message", len(d.b)))
	}
	if d.err != nil {
		return nil, fmt.Errorf("%v message of %d bytes: %w", msg.Kind, len(b), d.err)
	}
	return msg, nil
}

// decoder takes values off b until one is wrong, and remembers that.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail(errors.New("it ends early"))
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) truth() bool {
	c := d.byte()
	if c > 1 {
		d.fail(fmt.Errorf("byte %d where 0 or 1 is expected", c))
	}
	return c == 1
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail(errors.New("a number is cut off or too large"))
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) below(limit int, what string) int {
	v := d.uvarint()
	if d.err == nil && v >= uint64(limit) {
		d.fail(fmt.Errorf("%s %d, expected less than %d", what, v, limit))
		return 0
	}
	return int(v)
}

func (d *decoder) reports(size int) []errchan.Report {
	const shortest = 3 // bytes of a report
	n := d.below(len(d.b)/shortest+1, "number of reports")
	if d.err != nil || n == 0 {
		return nil
	}
	reports := make([]errchan.Report, 0, n)
	for range n {
		r := errchan.Report{Rank: d.below(size, "rank"), Corrupt: d.truth()}
		length := d.below(MaxData+1, "length of data")
		if d.err == nil && length > len(d.b) {
			d.fail(errors.New("data end early"))
		}
		if d.err != nil {
			return nil
		}
		r.Data, d.b = d.b[:length:length], d.b[length:]
		reports = append(reports, r)
	}
	return reports
}

// shared is the verdict decoded last in this process, and what from. Where all
// ranks live in one process and hand the same bytes on, they share one verdict:
// its size is the number of failures, and so would be each rank's copy.
var shared atomic.Pointer[struct {
	from *byte // its first byte; kept, so that no other message can have it
	len  int
	msg  *Message
}]

func decodeShared(b []byte, size int) (*Message, error) {
	if len(b) == 0 || Kind(b[0]) != Verdict {
		return Decode(b, size)
	}
	if s := shared.Load(); s != nil && s.from == unsafe.SliceData(b) && s.len == len(b) {
		return s.msg, nil
	}
	msg, err := Decode(b, size)
	if err == nil {
		shared.Store(&struct {
			from *byte
			len  int
			msg  *Message
		}{unsafe.SliceData(b), len(b), msg})
	}
	return msg, err
}
