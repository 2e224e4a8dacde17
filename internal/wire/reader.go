package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A Reader decodes values from bytes of another rank. After the first wrong value it has failed: it
// keeps that error and returns zeros.
type Reader struct {
	b   []byte
	err error
}

// NewReader returns a Reader of b. The slices that it returns are parts of b, so b must not be
// changed afterwards.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Fail makes the Reader fail with err, unless it has failed already.
func (d *Reader) Fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

// Failed says whether the Reader has failed.
func (d *Reader) Failed() bool { return d.err != nil }

// Len returns the number of bytes left, 0 if the Reader has failed.
func (d *Reader) Len() int { return len(d.b) }

// End returns the first error. Bytes that are left over are one.
func (d *Reader) End() error {
	if len(d.b) > 0 {
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

// Bool reads a byte that is 0 or 1.
func (d *Reader) Bool() bool {
	c := d.Byte()
	if c > 1 {
		d.Fail(fmt.Errorf("byte %d where 0 or 1 is expected", c))
	}
	return c == 1
}

// Uvarint reads an unsigned varint.
func (d *Reader) Uvarint() uint64 { return number(d, binary.Uvarint) }

// Varint reads a signed varint.
func (d *Reader) Varint() int64 { return number(d, binary.Varint) }

func number[N int64 | uint64](d *Reader, decode func([]byte) (N, int)) N {
	v, n := decode(d.b)
	if n <= 0 {
		d.Fail(errors.New("a number is cut off or too large"))
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Below reads a number less than limit. In the error, what names the number.
func (d *Reader) Below(limit int, what string) int {
	v := d.Uvarint()
	if d.err == nil && v >= uint64(limit) {
		d.Fail(fmt.Errorf("%s %d, expected less than %d", what, v, limit))
		return 0
	}
	return int(v)
}

// Bytes reads what AppendBytes has appended. The result is a part of the input; it is nil if its
// length is 0.
func (d *Reader) Bytes() []byte {
	n := d.Uvarint()
	if n > uint64(len(d.b)) {
		d.Fail(errors.New("it ends early"))
	}
	if d.err != nil || n == 0 {
		return nil
	}
	var bytes []byte
	bytes, d.b = d.b[:n:n], d.b[n:]
	return bytes
}

// Text is Bytes, as a string.
func (d *Reader) Text() string { return string(d.Bytes()) }

// Rest reads all bytes that are left.
func (d *Reader) Rest() string {
	text := string(d.b)
	d.b = nil
	return text
}

// Ranks reads what AppendRanks has appended. The ranks are ascending and below size.
func (d *Reader) Ranks(size int) []int {
	n := d.Below(len(d.b)+1, "number of ranks")
	if n == 0 {
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
