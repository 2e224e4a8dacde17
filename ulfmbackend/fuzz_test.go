package ulfmbackend

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// FuzzDecode: whatever bytes come, Decode returns a message that Encode writes back, or an error.
func FuzzDecode(f *testing.F) {
	v := Value{Calls: errchan.Shrink, Flag: -8, Dead: []int{0, 3}, Acked: []int{3}, Reports: []errchan.Report{{Rank: 1, Data: []byte("a")}, {Rank: 1, Corrupt: true, Index: 1}}}
	id := errchan.Agreement{Epoch: 258, Seq: 300}
	v.Settled = []errchan.Settled{
		{Comm: 1, ID: id, Decision: &errchan.Decision{Calls: errchan.Agree, Flag: 5, Dead: []int{1, 4}, Unacked: []int{4}}, By: 2},
		{Comm: 1 << 63, ID: errchan.Agreement{Creates: true}},
	}
	for _, msg := range []*Message{
		{Kind: Notice, ID: errchan.Agreement{Seq: 7}, Corrupt: true}, {Kind: Revoke},
		{Kind: Up, Stream: Repairs, ID: id, Value: &v}, {Kind: Decided, ID: id, Value: &v}, {Kind: Up, Value: &v},
		{Kind: Decided, Stream: Creations, ID: id, Value: &v, Origin: 3}, {Kind: Up, Value: &neutral},
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
		m := NewMachine(2, 5, 1, 0) // and a machine takes it, or says why not
		_ = m.Step(3, msg)
		for {
			if _, ok := m.Next(); !ok {
				break
			}
		}
	})
}
