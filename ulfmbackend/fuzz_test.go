package ulfmbackend

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// FuzzDecode: whatever bytes come, Decode returns a message that Encode writes
// back, or an error.
func FuzzDecode(f *testing.F) {
	v := Value{Calls: errchan.Shrink, Flag: -8, Dead: []int{0, 3}, Acked: []int{3}, Reports: []errchan.Report{{Rank: 1, Data: []byte("a")}, {Rank: 1, Corrupt: true}}}
	id := errchan.Agreement{Epoch: 258, Seq: 300}
	for _, msg := range []*Message{
		{Kind: Notice, ID: errchan.Agreement{Seq: 7}, Corrupt: true}, {Kind: Revoke}, {Kind: Ended},
		{Kind: Up, Stream: Repairs, ID: id, Value: &v}, {Kind: Decided, ID: id, Value: &v}, {Kind: Up, Value: &neutral},
	} {
		f.Add(Encode(msg))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		msg, err := Decode(b, 5)
		if err != nil {
			return
		}
		again, err := Decode(Encode(msg), 5)
		require.NoError(t, err)
		msg.encoded, again.encoded = nil, nil // numbers may be longer than they need
		require.Equal(t, msg, again)
		m := NewMachine(2, 5, 0) // and a machine takes it, or says why not
		_ = m.Step(3, msg)
		for {
			if _, ok := m.Next(); !ok {
				break
			}
		}
	})
}
