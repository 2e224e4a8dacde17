package blackchannel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// FuzzDecode: whatever bytes come, Decode returns a message that Encode writes
// back, or an error, and takes no more memory than the bytes do.
func FuzzDecode(f *testing.F) {
	reports := []errchan.Report{{Rank: 0, Data: []byte("a")}, {Rank: 3, Corrupt: true, Data: make([]byte, errchan.MaxData)}, {Rank: 3}}
	for _, msg := range []*Message{
		{Kind: Notice}, {Kind: Notice, Round: 1 << 63, Corrupt: true},
		{Kind: Notice, Comm: 1 << 63, Corrupt: true},
		{Kind: Stop, Request: []byte("s")}, {Kind: Closed, Comm: 7}, {Kind: Reports, Round: 300}, {Kind: Reports, Round: 2, Reports: reports},
		{Kind: Verdict, Round: 5, Verdict: &errchan.Verdict{Round: 5, Corrupt: true, Reports: reports}},
	} {
		f.Add(Encode(msg))
	}
	f.Add([]byte{})
	f.Add([]byte{byte(Reports), 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		const size = 300
		msg, err := Decode(b, size)
		if err != nil {
			require.Nil(t, msg)
			return
		}
		got := msg.Reports
		if msg.Kind == Verdict {
			got = msg.Verdict.Reports
			require.Equal(t, errchan.AnyCorrupt(got), msg.Verdict.Corrupt)
			require.Equal(t, msg.Round, msg.Verdict.Round)
		}
		require.LessOrEqual(t, cap(got), len(b))
		for _, r := range got {
			require.Less(t, r.Rank, size)
			require.LessOrEqual(t, len(r.Data), errchan.MaxData)
		}
		again, err := Decode(Encode(msg), size)
		require.NoError(t, err)
		require.Equal(t, Encode(msg), Encode(again))
	})
}
