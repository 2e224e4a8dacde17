package detector

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDecode: whatever bytes come, Decode returns a message that Encode writes
// back, or an error; and no message, sensible or not, makes a machine panic.
func FuzzDecode(f *testing.F) {
	for _, msg := range []Message{
		{Kind: Heartbeat}, {Kind: NewObserver}, {Kind: Notice}, {Kind: Notice, First: 3, Last: 299}, {Kind: Notice, First: 2, Last: 1}, side{300, 0}.answer(), {},
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

// Runs are the set that a map is, do not touch, and ascend.
func TestRuns(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var s runs
		want := make(map[int]bool)
		for range 40 {
			r := rng.IntN(50)
			require.Equal(t, !want[r], s.add(r))
			want[r] = true
			for i := range s {
				require.LessOrEqual(t, s[i].first, s[i].last)
				if i > 0 {
					require.Greater(t, s[i].first, s[i-1].last+1)
				}
			}
			for first := range 50 {
				all := true
				for last := first; last < 50; last++ {
					if all = all && want[last]; all != s.has(first, last) {
						require.Equal(t, all, s.has(first, last), "%d to %d in %v", first, last, s)
					}
				}
			}
		}
	}
}
