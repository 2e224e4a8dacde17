package errchan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// MaxData is the greatest length of a report's data, in bytes.
const MaxData = 4096

// AppendReports appends the number of reports, and for each its rank, corrupt, the
// length of its data, and the data. All numbers are varints.
func AppendReports(b []byte, reports []Report) []byte {
	b = binary.AppendUvarint(b, uint64(len(reports)))
	for _, r := range reports {
		b = binary.AppendUvarint(b, uint64(r.Rank))
		b = AppendBytes(AppendTruth(b, r.Corrupt), r.Data)
	}
	return b
}

// AppendTruth appends v as a byte, 0 or 1.
func AppendTruth(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// A Reader decodes values from bytes of another rank. The bytes are untrusted. After the
// first wrong value the Reader has failed, and returns zeros.
type Reader struct {
	b   []byte
	err error
}

// NewReader returns a Reader of b. The slices that it returns are parts of b, so b must not
// be changed afterwards.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Fail makes the Reader fail with err, unless it has failed already.
func (d *Reader) Fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

// Len returns the number of bytes left.
func (d *Reader) Len() int { return len(d.b) }

// Failed says whether the reading has ended with an error.
func (d *Reader) Failed() bool { return d.err != nil }

// End returns the first error. It is an error if bytes are left over.
func (d *Reader) End() error {
	if d.err == nil && len(d.b) > 0 {
		d.Fail(fmt.Errorf("%d bytes follow the message", len(d.b)))
	}
	return d.err
}

// Byte reads one byte.
func (d *Reader) Byte() byte {
	if len(d.b) == 0 {
		d.Fail(errors.New("it ends early"))
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

// Truth reads a byte that is 0 or 1.
func (d *Reader) Truth() bool {
	c := d.Byte()
	if c > 1 {
		d.Fail(fmt.Errorf("byte %d where 0 or 1 is expected", c))
	}
	return c == 1
}

// Uvarint reads an unsigned varint.
func (d *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.Fail(errors.New("a number is cut off or too large"))
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Varint reads a signed varint.
func (d *Reader) Varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.Fail(errors.New("a number is cut off or too large"))
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Below reads a number less than limit. The error calls the number what.
func (d *Reader) Below(limit int, what string) int {
	v := d.Uvarint()
	if d.err == nil && v >= uint64(limit) {
		d.Fail(fmt.Errorf("%s %d, expected less than %d", what, v, limit))
		return 0
	}
	return int(v)
}

// Text reads a length, and a text of that length.
func (d *Reader) Text() string { return string(d.Bytes()) }

// Bytes reads a length and as many bytes. The result is a part of the input; nil if the
// length is 0.
func (d *Reader) Bytes() []byte {
	n := d.Uvarint()
	if d.err == nil && n > uint64(len(d.b)) {
		d.Fail(errors.New("it ends early"))
	}
	if d.err != nil || n == 0 {
		return nil
	}
	var bytes []byte
	bytes, d.b = d.b[:n:n], d.b[n:]
	return bytes
}

// AppendBytes appends the number of bytes, and the bytes.
func AppendBytes(b, bytes []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(bytes))), bytes...)
}

// Rest reads all bytes that are left.
func (d *Reader) Rest() string {
	text := string(d.b)
	d.b = nil
	return text
}

// Reports reads what AppendReports has appended. The ranks are below size.
func (d *Reader) Reports(size int) []Report {
	const shortest = 3 // bytes of a report
	n := d.Below(len(d.b)/shortest+1, "number of reports")
	if d.err != nil || n == 0 {
		return nil
	}
	reports := make([]Report, 0, n)
	for range n {
		r := Report{Rank: d.Below(size, "rank"), Corrupt: d.Truth(), Data: d.Bytes()}
		if len(r.Data) > MaxData {
			d.Fail(fmt.Errorf("data of %d bytes, expected %d at most", len(r.Data), MaxData))
		}
		if d.err != nil {
			return nil
		}
		reports = append(reports, r)
	}
	return reports
}

// Ranks reads what AppendRanks has appended. The ranks are below size.
func (d *Reader) Ranks(size int) []int {
	n := d.Below(len(d.b)+1, "number of ranks")
	if d.err != nil || n == 0 {
		return nil
	}
	ranks := make([]int, 0, n)
	for range n {
		r := d.Below(size, "rank")
		if d.err == nil && len(ranks) > 0 && r <= ranks[len(ranks)-1] {
			d.Fail(fmt.Errorf("rank %d, expected a greater one than %d", r, ranks[len(ranks)-1]))
		}
		if d.err != nil {
			return nil
		}
		ranks = append(ranks, r)
	}
	return ranks
}

// AppendRanks appends the number of ranks, and the ranks, which are ascending.
func AppendRanks(b []byte, ranks []int) []byte {
	b = binary.AppendUvarint(b, uint64(len(ranks)))
	for _, r := range ranks {
		b = binary.AppendUvarint(b, uint64(r))
	}
	return b
}

// Shared keeps the message that was decoded last in this process. Ranks of one process that
// pass the same bytes on thus share one verdict instead of a copy each. A verdict may have a
// report of every rank.
type Shared[M any] struct{ last atomic.Pointer[shared[M]] }

type shared[M any] struct {
	from *byte // its first byte; kept, so that no other message can have it
	len  int
	msg  *M
}

// Decode returns decode(b), or the message kept if it was decoded from the same bytes.
func (s *Shared[M]) Decode(b []byte, decode func([]byte) (*M, error)) (*M, error) {
	from := unsafe.SliceData(b)
	if l := s.last.Load(); l != nil && l.from == from && l.len == len(b) {
		return l.msg, nil
	}
	msg, err := decode(b)
	if err == nil && len(b) > 0 {
		s.last.Store(&shared[M]{from, len(b), msg})
	}
	return msg, err
}
