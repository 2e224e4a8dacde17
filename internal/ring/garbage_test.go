package ring

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
)

// Contents that no writer writes are an error, and are not read.
func TestGarbage(t *testing.T) {
	const room = 256
	for _, test := range []struct {
		name string
		word uint64 // the first
		want string // how many bytes it says that a message has
	}{
		{"longer than the longest", uint64(Longest(room)) + 2, "57"},
		{"too long for an int", 1 << 63, "9223372036854775807"},
		{"nothing but skips", skip, "18446744073709551614"},
	} {
		t.Run(test.name, func(t *testing.T) {
			shared := make([]byte, Size(room))
			binary.NativeEndian.PutUint64(shared[line:], test.word)
			r := NewReader(shared)
			m, err := r.Read()
			require.Nil(t, m)
			require.EqualError(t, err, "shared memory: a message of "+test.want+" bytes, expected 56 or fewer")
		})
	}
}

// A writer does not wait forever for a reader that claims to have read what was not written, or
// takes its position back.
func TestGarbageOfTheReader(t *testing.T) {
	for _, told := range []uint64{1 << 20, 1<<64 - 1} {
		w, _ := fresh(256)
		atomic.StoreUint64(w.word(0), told)
		var err error
		for sent := 0; err == nil; sent++ {
			require.Less(t, sent, 5)
			_, err = w.Begin(56)
			w.End(56)
		}
		require.ErrorContains(t, err, "its reader is at")
	}
}

// FuzzGarbage runs both ends of a ring on any memory, which another goroutine
// changes meanwhile. They return errors, or what is in the memory.
func FuzzGarbage(f *testing.F) {
	word := func(w uint64) []byte { return binary.NativeEndian.AppendUint64(nil, w) }
	f.Add(word(57), uint64(9), []byte("rrwwrw"))
	f.Add(word(skip), uint64(skip), []byte("rwrwrwwwwwww"))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 1}, uint64(1), []byte("wrwrrwwrwr"))
	f.Fuzz(func(t *testing.T, garbage []byte, other uint64, steps []byte) {
		const room = 256
		shared := make([]byte, Size(room))
		for at := 0; len(garbage) > 0 && at < len(shared); at += line { // where headers may be
			copy(shared[at:], garbage[:min(8, len(garbage))])
			garbage = garbage[min(8, len(garbage)):]
		}
		if !buildtags.Race { // the detector does not know of a writer in another process
			defer scribble(shared, other)()
		}
		w, r := NewWriter(shared), NewReader(shared)
		for _, step := range steps {
			if step%2 == 'r'%2 {
				m, err := r.Read()
				if err == nil && m != nil {
					require.LessOrEqual(t, len(m), Longest(room))
					r.Done(len(m))
				}
			} else if b, err := w.Begin(int(step) % (Longest(room) + 1)); err == nil && b != nil {
				w.End(len(b))
			}
		}
	})
}

// scribble has a goroutine change the words of the memory until the function that it returns is
// called.
func scribble(shared []byte, other uint64) (stop func()) {
	var stopped atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for at := 0; !stopped.Load(); at = (at + line) % len(shared) {
			w := memory(shared).word(at)
			atomic.StoreUint64(w, atomic.LoadUint64(w)^other)
		}
	})
	return func() { stopped.Store(true); writer.Wait() }
}
