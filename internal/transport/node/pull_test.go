//go:build linux && (amd64 || arm64)

package node

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/match"
)

func text(seed byte) []byte {
	b := make([]byte, 3*pullChunk+1000)
	for i := range b {
		b[i] = seed + byte(i%251)
	}
	return b
}

func starts(begin func(*transport.Request), peer int, buf []byte) *request {
	r := &request{Request: transport.Request{Peer: peer, Tag: 1, Buf: buf}}
	return r.start(begin)
}

// A long message is read from the sender's memory. If this is not possible the sender sends it.
func TestPull(t *testing.T) {
	for _, test := range []struct {
		name          string
		spoil         func(sender *comm, origin []byte)
		pipes, hidden bool
	}{
		{"memory can be read", func(*comm, []byte) {}, false, false},
		{"another process has the number", func(sender *comm, _ []byte) { sender.e.cookie[3]++ }, true, true},
		{"no process has the number", func(_ *comm, origin []byte) { origin[3] = 0x7f }, true, true},
		{"no such address", func(_ *comm, origin []byte) { origin[8+6] = 0x7f }, true, false},
		{"no such cookie", func(_ *comm, origin []byte) { origin[16+6] = 0x7f }, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, pipe := pair(false)
			sent, got := text(1), make([]byte, len(text(1)))
			s := starts(c[0].Isend, 1, sent)
			settle(c[1])
			c[1].DropIf(func(n *match.Node[arrival]) bool {
				test.spoil(c[0], n.Of.bytes)
				return false
			})
			r := starts(c[1].Irecv, 0, got)
			settle(c[:]...)
			require.True(t, s.ended() && r.ended())
			require.NoError(t, s.Err)
			require.NoError(t, r.Err)
			require.True(t, bytes.Equal(sent, got))
			require.Equal(t, test.pipes, len(bytes.Trim(pipe, "\x00")) > 0, "through the pipe")
			require.Equal(t, test.hidden, c[1].e.out[0].hidden)
			require.Empty(t, c[1].e.pulls)
			require.Empty(t, c[1].e.coming)
		})
	}
}

// A sender may use its buffer as soon as it has taken an offer back, also if the receiver has read
// some or all of it. The receive gets the next message.
func TestPullOfWhatIsTakenBack(t *testing.T) {
	for turns := range 6 {
		c, _ := pair(false)
		sent, got := text(1), make([]byte, len(text(1)))
		s := starts(c[0].Isend, 1, sent)
		r := starts(c[1].Irecv, 0, got)
		for range turns {
			c[1].e.progress(1)
		}
		require.True(t, c[0].Cancel(&s.Request))
		copy(sent, text(7))
		settle(c[:]...)
		require.True(t, s.ended())
		require.False(t, r.ended(), "after %d turns", turns)
		s = starts(c[0].Isend, 1, sent)
		settle(c[:]...)
		require.True(t, s.ended() && r.ended())
		require.NoError(t, r.Err)
		require.True(t, bytes.Equal(text(7), got))
	}
}

// A receive whose sender dies ends, also if all bytes have been read: the sender may have taken the
// offer back. Its buffer is the program's then (F4).
func TestPullFromTheDead(t *testing.T) {
	for turns := range 6 {
		c, _ := pair(true)
		starts(c[0].Isend, 1, text(1))
		r := starts(c[1].Irecv, 0, make([]byte, len(text(1))))
		for range turns {
			c[1].e.progress(1)
		}
		c[1].e.mu.Lock()
		c[1].e.takeDeath(0)
		c[1].e.unlock()
		require.True(t, r.ended())
		require.Equal(t, &transport.DeadError{Rank: 0}, r.Err)
		clear(r.Buf)
		settle(c[1])
		require.Empty(t, c[1].e.pulls)
		require.Empty(t, bytes.Trim(r.Buf, "\x00"))
	}
}

// claimed returns a send whose receiver has begun to read its bytes, and knows that it stands.
func claimed(t *testing.T, mortal bool) (c [2]*comm, s, r *request) {
	c, _ = pair(mortal)
	s, r = starts(c[0].Isend, 1, text(1)), starts(c[1].Irecv, 0, make([]byte, len(text(1))))
	c[1].e.progress(1)
	c[0].e.progress(1)
	require.False(t, s.ended() || r.ended())
	return c, s, r
}

// A send whose bytes are being read is matched: nothing takes it back, and its buffer is the library's
// until they have been read (F4).
func TestClaimedSend(t *testing.T) {
	for name, leave := range map[string]func(*comm, *transport.Request){
		"Cancel":  func(c *comm, s *transport.Request) { require.False(t, c.Cancel(s)) },
		"Advance": func(c *comm, _ *transport.Request) { c.Advance(0, transport.ErrCancelled) },
	} {
		t.Run(name, func(t *testing.T) {
			c, s, r := claimed(t, false)
			over := make(chan struct{})
			go func() {
				defer close(over)
				leave(c[0], &s.Request)
				if name == "Advance" {
					clear(s.Buf)
				}
			}()
			if name == "Cancel" {
				<-over
			}
			settle(c[:]...)
			<-over
			require.True(t, s.ended() && r.ended())
			require.NoError(t, s.Err)
			require.NoError(t, r.Err)
			require.True(t, bytes.Equal(text(1), r.Buf))
		})
	}
}

// A send ends if its receiver dies while it reads.
func TestClaimOfTheDead(t *testing.T) {
	c, s, _ := claimed(t, true)
	c[0].e.mu.Lock()
	c[0].e.takeDeath(1)
	c[0].e.unlock()
	require.True(t, s.ended())
	require.Equal(t, &transport.DeadError{Rank: 1}, s.Err)
	require.Empty(t, c[0].e.offers)
	require.Empty(t, c[0].sending)
}
