package wire_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/wire"
)

const size = 9 // ranks

// read reads a value of each kind.
func read(d *wire.Reader) []any {
	return []any{
		d.Byte(), d.Bool(), d.Uvarint(), d.Varint(), d.Below(size, "number"),
		d.Bytes(), d.Text(), d.Ranks(size), d.Rest(),
	}
}

// encoded is what read reads: all values, after which a text is left.
func encoded() []byte {
	b := wire.AppendBool([]byte{7}, true)
	b = binary.AppendUvarint(b, 1<<63)
	b = binary.AppendVarint(b, -1<<63)
	b = binary.AppendUvarint(b, size-1)
	b = wire.AppendBytes(b, []byte{1, 2})
	b = wire.AppendBytes(b, "text")
	b = wire.AppendRanks(b, []int{0, 3, 8})
	return append(b, "rest"...)
}

// A Reader returns the values that were appended.
func TestRead(t *testing.T) {
	d := wire.NewReader(encoded())
	require.Equal(t, []any{
		byte(7), true, uint64(1 << 63), int64(-1 << 63), size - 1,
		[]byte{1, 2}, "text", []int{0, 3, 8}, "rest",
	}, read(d))
	require.NoError(t, d.End())
}

// Empty values are nil, so that messages that are equal are so for reflect.DeepEqual.
func TestReadEmpty(t *testing.T) {
	d := wire.NewReader(wire.AppendRanks(wire.AppendBytes(nil, ""), nil))
	require.Nil(t, d.Bytes())
	require.Nil(t, d.Ranks(size))
	require.NoError(t, d.End())
}

// The first wrong value is the error, and each value after it is zero.
func TestReadWrong(t *testing.T) {
	for _, test := range []struct {
		b      []byte
		read   func(*wire.Reader)
		expect string
	}{
		{nil, func(d *wire.Reader) { d.Byte() }, "it ends early"},
		{[]byte{2}, func(d *wire.Reader) { d.Bool() }, "byte 2 where 0 or 1 is expected"},
		{[]byte{0x80}, func(d *wire.Reader) { d.Uvarint() }, "a number is cut off or too large"},
		{slices.Repeat([]byte{0xff}, 11), func(d *wire.Reader) { d.Varint() }, "a number is cut off or too large"},
		{[]byte{9}, func(d *wire.Reader) { d.Below(size, "root") }, "root 9, expected less than 9"},
		{[]byte{2, 0}, func(d *wire.Reader) { d.Bytes() }, "it ends early"},
		{[]byte{9, 0}, func(d *wire.Reader) { d.Ranks(size) }, "number of ranks 9, expected less than 3"},
		{[]byte{2, 3, 3}, func(d *wire.Reader) { d.Ranks(size) }, "rank 3, expected a greater one than 3"},
		{[]byte{1, 9}, func(d *wire.Reader) { d.Ranks(size) }, "rank 9, expected less than 9"},
		{[]byte{1}, func(*wire.Reader) {}, "1 bytes follow the message"},
		{[]byte{1}, func(d *wire.Reader) { d.Fail(errors.New("ours")) }, "ours"},
	} {
		d := wire.NewReader(test.b)
		test.read(d)
		if test.expect != "1 bytes follow the message" {
			require.True(t, d.Failed(), test.expect)
			require.Zero(t, d.Len(), test.expect)
			require.Equal(t, read(wire.NewReader(nil)), read(d), test.expect)
		}
		require.EqualError(t, d.End(), test.expect)
	}
}

// FuzzReader: whatever bytes come, a Reader returns values that are within their limits.
func FuzzReader(f *testing.F) {
	f.Add(encoded())
	f.Add(slices.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := wire.NewReader(b)
		d.Byte()
		d.Bool()
		d.Uvarint()
		d.Varint()
		require.Less(t, d.Below(size, "number"), size)
		bytes := d.Bytes()
		require.Equal(t, len(bytes), cap(bytes))
		require.LessOrEqual(t, len(bytes)+len(d.Text()), len(b))
		ranks := d.Ranks(size)
		require.True(t, slices.IsSorted(ranks))
		for _, r := range ranks {
			require.True(t, r >= 0 && r < size, r)
		}
		left := d.Len()
		require.Len(t, d.Rest(), left)
	})
}

// A message that ranks of one process pass on is decoded once, unlike equal bytes elsewhere.
func TestShared(t *testing.T) {
	var shared wire.Shared[string]
	calls := 0
	decode := func(b []byte) (*string, error) {
		calls++
		s := string(b)
		return &s, nil
	}
	b := []byte("verdict")
	one, err := shared.Decode(b, decode)
	require.NoError(t, err)
	two, err := shared.Decode(b, decode)
	require.NoError(t, err)
	require.Same(t, one, two)
	_, err = shared.Decode(slices.Clone(b), decode)
	require.NoError(t, err)
	require.Equal(t, 2, calls)
	_, err = shared.Decode(b[:3], decode)
	require.NoError(t, err)
	require.Equal(t, 3, calls)
	_, err = shared.Decode(nil, func([]byte) (*string, error) { return nil, errors.New("empty") })
	require.EqualError(t, err, "empty")
}
