package local

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

type ended chan *transport.Request

func (e ended) Completed(r *transport.Request) { e <- r }
func (e ended) Awaited() bool                  { return true }

// A send that races with its receiver's death ends.
func TestSendMeetsDeath(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 1000
	}
	const n = 8
	for range rounds {
		sides := NewMortal(n)
		done := make(ended, 1)
		var start, over sync.WaitGroup
		start.Add(1)
		over.Go(func() {
			start.Wait()
			sides[n-1].Die()
		})
		over.Go(func() {
			start.Wait()
			sides[0].Isend(&transport.Request{Peer: n - 1, Mode: transport.Synchronous, Buf: []byte{1}, Done: done})
		})
		start.Done()
		over.Wait()
		runtime.KeepAlive(sides)
		require.Len(t, done, 1)
		require.Equal(t, &transport.DeadError{Rank: n - 1}, (<-done).Err)
	}
}

// Nothing reaches a process that has died, not even what had arrived before.
func TestTheDeadReceiveNothing(t *testing.T) {
	sides := NewMortal(2)
	require.True(t, sides[0].TrySend(1, 1, 0, 0, []byte{9}))
	sides[1].Die()
	done := make(ended, 2)
	sides[1].Irecv(&transport.Request{Peer: 0, Tag: 1, Buf: make([]byte, 1), Done: done})
	sides[1].Probe(&transport.Request{Peer: 0, Tag: 1, Done: done})
	for range 2 {
		require.Equal(t, transport.ErrDied, (<-done).Err)
	}
}

// mourner is a listener that calls died.
type mourner struct{ died func() }

func (m mourner) Died(int)                  { m.died() }
func (m mourner) Take(int, []byte)          {}
func (m mourner) Next() (int, []byte, bool) { return 0, nil, false }
func (m mourner) Purpose([]byte) string     { return "" }

// A rank that has been told of a death receives no message that dies with the sender, on any
// communicator, but every message that was buffered.
func TestMessagesThatDieWithTheirSender(t *testing.T) {
	sides := NewMortal(2)
	name := transport.Name{Seq: 1}
	var dups [2]transport.Comm
	for i, c := range sides {
		var err error
		dups[i], err = c.Sub(name, nil)
		require.NoError(t, err)
	}
	done, sent := make(ended, 4), make(ended, 2)
	sides[0].Listen(mourner{func() {
		for _, c := range []transport.Comm{sides[0], dups[0]} {
			for tag := range 2 {
				c.Irecv(&transport.Request{Peer: 1, Tag: tag, Buf: make([]byte, 1), Done: done})
			}
		}
	}})
	for _, c := range []transport.Comm{sides[1], dups[1]} {
		require.True(t, c.TrySend(0, 0, 0, 0, []byte{9}))
		c.Isend(&transport.Request{Peer: 0, Tag: 1, Mode: transport.Synchronous, Buf: []byte{1}, Done: sent})
	}
	sides[1].Die()
	for range 2 {
		require.Equal(t, transport.ErrDied, (<-sent).Err)
		require.NoError(t, (<-done).Err)
		require.Equal(t, &transport.DeadError{Rank: 1}, (<-done).Err)
	}
}

// After a death operations between the living work, except collective ones (H1).
func TestWhatIsBegunAfterADeath(t *testing.T) {
	sides := NewMortal(3)
	sides[2].Die()
	for tag, want := range map[int]error{7: nil, transport.CollectiveTag(1): &transport.DeadError{Rank: 2}} {
		done := make(ended, 2)
		sides[0].Isend(&transport.Request{Peer: 1, Tag: tag, Buf: []byte{1}, Done: done})
		sides[1].Irecv(&transport.Request{Peer: 0, Tag: tag, Buf: make([]byte, 1), Done: done})
		for range 2 {
			require.Equal(t, want, (<-done).Err, "tag %d", tag)
		}
		require.False(t, sides[0].TrySend(1, tag, 0, 0, []byte{1}), "Isend says why")
	}
}
