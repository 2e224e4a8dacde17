package ring

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func fresh(room int) (Writer, Reader) {
	shared := make([]byte, Size(room))
	return NewWriter(shared), NewReader(shared)
}

// Every message arrives once, whole and in order, while two goroutines use the ring many times
// over.
func TestMessagesArrive(t *testing.T) {
	const messages = 10000
	for _, room := range []int{256, 1024, 4096, 65536} {
		w, r := fresh(room)
		random := func() *rand.Rand { return rand.New(rand.NewPCG(1, uint64(room))) }
		length := func(r *rand.Rand) int { return 8 + r.IntN(Longest(room)-7) }
		go func() {
			random := random()
			for i := range messages {
				n := length(random)
				b, _ := w.Begin(n)
				for ; b == nil; b, _ = w.Begin(n) {
					runtime.Gosched()
				}
				for j := range b {
					b[j] = byte(i)
				}
				binary.LittleEndian.PutUint64(b, uint64(i))
				w.End(n)
			}
		}()
		lengths := random()
		for i := range messages {
			for !r.Ready() {
				runtime.Gosched()
			}
			m, err := r.Read()
			require.NoError(t, err)
			require.Len(t, m, length(lengths))
			require.EqualValues(t, i, binary.LittleEndian.Uint64(m))
			require.Equal(t, bytes.Repeat([]byte{byte(i)}, len(m)-8), m[8:])
			r.Done(len(m))
		}
		require.False(t, r.Ready())
	}
}

// FuzzRing compares a ring with a list, as far as there is room. There is room for the longest
// message once all messages have been read.
func FuzzRing(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0, 200, 0, 0, 0, 56, 57, 58, 0, 0})
	f.Fuzz(func(t *testing.T, steps []byte) {
		const room = 512
		w, r := fresh(room)
		var list [][]byte
		for i, step := range steps {
			if n := int(step) - 1; n >= 0 {
				n %= Longest(room) + 1
				b, err := w.Begin(n)
				require.NoError(t, err)
				if b == nil {
					require.NotEmpty(t, list)
					continue
				}
				m := bytes.Repeat([]byte{byte(i)}, n)
				copy(b, m)
				w.End(n)
				list = append(list, m)
				continue
			}
			require.Equal(t, len(list) > 0, r.Ready())
			m, err := r.Read()
			require.NoError(t, err)
			require.Equal(t, len(list) > 0, m != nil)
			if m != nil {
				require.Equal(t, list[0], bytes.Clone(m))
				list = list[1:]
				r.Done(len(m))
			}
		}
	})
}
