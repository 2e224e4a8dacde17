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

// exchanged checks that a message has been sent and received.
func exchanged(t *testing.T, send, recv *request, want []byte) {
	t.Helper()
	require.True(t, send.ended() && recv.ended())
	require.NoError(t, send.Err)
	require.NoError(t, recv.Err)
	require.True(t, bytes.Equal(want, recv.Buf))
}

// A long message is read from the sender's memory. If this is not possible the sender sends it.
func TestPull(t *testing.T) {
	for _, test := range []struct {
		name          string
		spoil         func(sender *comm, origin []byte)
		sends, hidden bool
	}{
		{"memory can be read", func(*comm, []byte) {}, false, false},
		{"another process has the number", func(sender *comm, _ []byte) { sender.e.cookie[3]++ }, true, true},
		{"no process has the number", func(_ *comm, origin []byte) { origin[3] = 0x7f }, true, true},
		{"no such address", func(_ *comm, origin []byte) { origin[8+6] = 0x7f }, true, false},
		{"no such cookie", func(_ *comm, origin []byte) { origin[16+6] = 0x7f }, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, ring := pair(false)
			sent := text(1)
			s := begin(c[0].Isend, 1, 1, sent)
			settle(c[1])
			c[1].DropIf(func(n *match.Node[arrival]) bool {
				test.spoil(c[0], n.Of.bytes)
				return false
			})
			r := begin(c[1].Irecv, 0, 1, make([]byte, len(sent)))
			settle(c[:]...)
			exchanged(t, s, r, text(1))
			require.Equal(t, test.sends, passed(ring, sent), "through the ring")
			require.Equal(t, test.hidden, c[1].e.out[0].hidden)
			require.Empty(t, c[1].e.pulls)
			require.Empty(t, c[1].e.coming)
		})
	}
}

// A send is taken back or read, whichever is first. If it is taken back the sender may use its
// buffer at once (F4), and the receive gets the next message. If the receiver has begun to read it,
// it is matched.
func TestPullOfWhatIsTakenBack(t *testing.T) {
	for _, late := range []bool{false, true} { // the receiver finds the offer before the packet that takes it back
		c, _ := pair(false)
		sent := text(1)
		s := begin(c[0].Isend, 1, 1, sent)
		var r *request
		receive := func() {
			r = begin(c[1].Irecv, 0, 1, make([]byte, len(sent)))
			require.Len(t, c[1].e.pulls, 1)
		}
		if !late {
			receive()
		}
		require.True(t, c[0].Cancel(&s.Request))
		copy(sent, text(7))
		if late {
			receive()
		}
		settle(c[:]...)
		require.True(t, s.ended())
		require.False(t, r.ended())
		s = begin(c[0].Isend, 1, 1, sent)
		settle(c[:]...)
		exchanged(t, s, r, text(7))
	}
	for turns := 1; turns < 5; turns++ { // the fourth reads the rest
		c, _ := pair(false)
		s := begin(c[0].Isend, 1, 1, text(1))
		r := begin(c[1].Irecv, 0, 1, make([]byte, len(text(1))))
		for range turns {
			c[1].e.progress(1)
		}
		require.False(t, c[0].Cancel(&s.Request))
		settle(c[:]...)
		exchanged(t, s, r, text(1))
	}
}

// A sender does not leave its epoch while its bytes are read (P4).
func TestAdvanceOfWhatIsRead(t *testing.T) {
	c, _ := pair(false)
	s := begin(c[0].Isend, 1, 1, text(1))
	r := begin(c[1].Irecv, 0, 1, make([]byte, len(text(1))))
	c[1].e.progress(1)
	over := make(chan struct{})
	go func() {
		defer close(over)
		c[0].Advance(0, transport.ErrCancelled)
		clear(s.Buf)
	}()
	for !r.ended() {
		c[1].e.progress(1)
	}
	<-over
	exchanged(t, s, r, text(1))
}

// If one of the processes dies while the receiver reads, the other's request ends, and nothing uses
// its buffer any more (F4).
func TestPullAndDeath(t *testing.T) {
	for turns := 1; turns < 4; turns++ { // the fourth reads the last bytes
		for dies := range 2 {
			c, _ := pair(true)
			requests := []*request{begin(c[0].Isend, 1, 1, text(1)), begin(c[1].Irecv, 0, 1, make([]byte, len(text(1))))}
			for range turns {
				c[1].e.progress(1)
			}
			lives, r := c[1-dies], requests[1-dies]
			lives.e.mu.Lock()
			if turns == 2 { // the program has died, and then the process
				lives.e.noteDeath(lives.liveness, dies)
				require.False(t, r.ended())
			}
			lives.e.takeDeath(dies)
			lives.e.unlock()
			require.True(t, r.ended())
			require.Equal(t, &transport.DeadError{Rank: dies}, r.Err)
			clear(r.Buf)
			settle(lives)
			require.Empty(t, lives.e.pulls)
			require.Empty(t, lives.e.offers)
			require.Empty(t, lives.moving)
			require.Empty(t, bytes.Trim(r.Buf, "\x00"))
		}
	}
}

// passed says whether a message has gone through the ring, which sets the first 8 bytes of each
// cache line to 0 afterwards.
func passed(ring, message []byte) bool { return bytes.Contains(ring, message[8:64]) }

// While all places of the table are taken, messages go through the ring.
func TestPullWithoutAPlace(t *testing.T) {
	c, ring := pair(false)
	var sends, receives []*request
	for range 100 {
		sends = append(sends, begin(c[0].Isend, 1, 1, text(byte(len(sends)))[:Pullable]))
	}
	for range sends {
		receives = append(receives, begin(c[1].Irecv, 0, 1, make([]byte, Pullable)))
		settle(c[:]...)
	}
	for i, r := range receives {
		exchanged(t, sends[i], r, text(byte(i))[:Pullable])
	}
	require.True(t, passed(ring, text(99)))
	last := bytes.Repeat([]byte{1}, Pullable)
	s, r := begin(c[0].Isend, 1, 1, last), begin(c[1].Irecv, 0, 1, make([]byte, Pullable))
	settle(c[:]...)
	exchanged(t, s, r, last)
	require.False(t, passed(ring, last), "the places are free again")
}

// A send may be cancelled when its receiver has accepted it, as long as the sender does not know
// that. An Mrecv then ends, because no other message can take the place of its own.
func TestCancelOfAnAcceptedMessage(t *testing.T) {
	c, _ := pair(false)
	s := begin(c[0].Isend, 1, 1, make([]byte, 20_000))
	probe := begin(c[1].Mprobe, 0, 1, nil)
	settle(c[1])
	require.True(t, probe.ended())
	probe.Buf = make([]byte, 20_000)
	r := probe.start(c[1].Mrecv)
	require.True(t, c[0].Cancel(&s.Request))
	settle(c[:]...)
	require.True(t, s.ended() && r.ended())
	require.ErrorIs(t, s.Err, transport.ErrCancelled)
	require.ErrorIs(t, r.Err, transport.ErrCancelled)
}
