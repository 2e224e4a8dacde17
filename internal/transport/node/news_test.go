package node

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// slow is a Completer that takes long, as the one of a reduction's message does.
type slow func()

func (s slow) Completed(*transport.Request) { s() }

// listening is a Listener that counts what it takes.
type listening struct{ taken int }

func (l *listening) Take(int, []byte)          { l.taken++ }
func (l *listening) Next() (int, []byte, bool) { return 0, nil, false }
func (l *listening) Died(int)                  {}
func (l *listening) Purpose([]byte) string     { return "" }

// A message of the error channel is not told while the end of a request is: the error that it
// brings may give the program buffers that the end still uses (P4). It is told directly afterwards,
// even if that goroutine ends.
func TestEndIsToldBeforeWhatFollows(t *testing.T) {
	for _, leave := range []func(){func() {}, runtime.Goexit} {
		c, _ := pair(false)
		l := new(listening)
		c[1].Listen(l)
		within, after := -1, -1
		over := make(chan struct{})
		end := func() {
			c[0].e.lock()
			c[0].tell(1, []byte{1})
			c[0].e.unlock()
			other := make(chan struct{})
			go func() {
				defer close(other)
				for range 10 {
					c[1].e.progress(1)
				}
			}()
			<-other
			within = l.taken
			leave()
		}
		go func() {
			defer close(over)
			defer func() { after = l.taken }()
			c[1].Irecv(&transport.Request{Peer: 0, Tag: 2, Buf: make([]byte, 8), Done: slow(end)})
			require.True(t, c[0].TrySend(1, 2, 0, 0, make([]byte, 8)))
			c[1].e.progress(1)
		}()
		<-over
		require.Equal(t, 0, within)
		require.Equal(t, 1, after)
	}
}
