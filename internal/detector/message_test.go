package detector

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDecode: whatever bytes come, Decode returns a message that Encode writes
// back, or an error; and no message, sensible or not, makes a machine panic.
func FuzzDecode(f *testing.F) {
	for _, msg := range []Message{
		{Kind: Heartbeat}, {Kind: newObserver}, {Kind: Notice}, {Kind: Notice, first: 3, last: 299}, {Kind: Notice, first: 2, last: 1}, side{300, 0}.answer(), {},
	} {
		b := Encode(msg)
		f.Add(b[:], 1)
	}
	f.Add([]byte{}, 0)
	f.Add([]byte{3, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff}, 0)
	f.Fuzz(func(t *testing.T, b []byte, from int) {
		const size = 300
		msg, err := Decode(b, size)
		if err != nil {
			require.Zero(t, msg)
			return
		}
		require.NoError(t, msg.check(size))
		again := Encode(msg)
		require.Equal(t, b, again[:])
		m, err := New(usual, 5, size, 0)
		require.NoError(t, err)
		for range 2 {
			_ = m.Step(0, from, msg)
			m.Tick(m.Deadline())
		}
	})
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{nil, "message of 0 bytes, expected 9"},
		{make([]byte, 10), "message of 10 bytes, expected 9"},
		{make([]byte, 9), "message of kind 0, expected 1 to 5"},
		{[]byte{3, 1, 0, 0, 0, 4, 0, 0, 0}, "rank 4 in a message, expected less than 4"},
		{[]byte{3, 2, 0, 0, 0, 1, 0, 0, 0}, "notice of ranks 2 to 1, expected an ascending range of 0 to 3"},
		{[]byte{1, 0, 0, 0, 0, 1, 0, 0, 0}, "heartbeat of ranks 0 to 1, expected 0 to 0"},
	} {
		_, err := Decode(c.b, 4)
		require.EqualError(t, err, "detector: "+c.want)
	}
}
