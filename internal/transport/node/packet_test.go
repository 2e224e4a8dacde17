package node

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// headers has one of each kind, with the ends of what its fields may be.
func headers() (all []header) {
	for k := whole; k <= dead; k++ {
		all = append(all,
			header{kind: k},
			header{kind: k, listener: true, transferTag: math.MaxUint32, to: math.MaxUint64, epoch: ^transport.Epoch(0), tag: math.MinInt, signature: math.MaxUint64, id: math.MaxUint64},
			header{kind: k, to: world.child(transport.Name{Seq: 7}), epoch: 3, tag: math.MaxInt, id: 1, transferTag: 2})
	}
	return all
}

func packet(h header, rest []byte) []byte {
	var b [headerLength]byte
	for i := range b {
		b[i] = 0xAA // a ring's memory has what was there before
	}
	h.encode(b[:])
	return append(b[:h.encodedLength()], rest...)
}

func TestHeaders(t *testing.T) {
	for _, h := range headers() {
		var rest []byte
		if h.kind == whole {
			rest, h.id = []byte("five."), 0
		}
		h.length = len(rest)
		var got header
		tail, err := got.decode(packet(h, rest))
		require.NoError(t, err)
		require.Equal(t, h, got)
		require.True(t, bytes.Equal(rest, tail))
	}
}

// Bytes that are no packet are an error that says why.
func TestNoPackets(t *testing.T) {
	for _, test := range []struct {
		packet []byte
		want   string
	}{
		{nil, "0 bytes, expected 40 or more"},
		{packet(header{kind: whole}, nil)[:wholeLength-1], "39 bytes, expected 40 or more"},
		{packet(header{kind: offer}, nil)[:headerLength-1], "55 bytes, expected 56 or more"},
		{packet(header{kind: 0}, nil), "kind 0"},
		{packet(header{kind: vouch + 1}, nil), fmt.Sprint("kind ", int(vouch)+1)},
		{packet(header{kind: offer, length: -1}, nil), fmt.Sprintf("a message of -1 bytes, expected 0 to %d", longestMessage)},
	} {
		_, err := new(header).decode(test.packet)
		require.EqualError(t, err, test.want)
	}
}

// Whatever bytes come, decode says what is wrong, or what it returns is what was sent.
func FuzzDecode(f *testing.F) {
	for _, h := range headers() {
		f.Add(packet(h, nil))
		h.length = 3
		f.Add(packet(h, []byte{1, 2, 3}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again header
		rest, err := h.decode(b)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, h.length, 0)
		if h.kind == whole {
			require.Len(t, rest, h.length)
		}
		restAgain, err := again.decode(packet(h, rest))
		require.NoError(t, err)
		require.Equal(t, h, again)
		require.Equal(t, rest, restAgain)
	})
}
