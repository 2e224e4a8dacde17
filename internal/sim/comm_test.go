package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

var errCause = errors.New("an error")

// The two ends of a match agree, although the sender has not been told yet.
func TestAdvanceAfterMatch(t *testing.T) {
	w := New(Config{Ranks: 2, Model: LogGP{Latency: 1000}})
	s := w.send(0, transport.Request{Peer: 1, Tag: 1, Mode: transport.Synchronous})
	r := w.recv(1, transport.Request{Peer: 0, Tag: 1})
	w.At(1500, 0, func() {
		require.Equal(t, 1, r.ends)
		require.Zero(t, s.ends)
		require.Equal(t, []*transport.Request{&s.Request}, transport.Pending(w.Comm(0)))
		require.False(t, w.Comm(0).Cancel(&s.Request), "it was matched")
		w.Comm(0).Advance(0, errCause)
		require.NoError(t, s.Err)
	})
	require.NoError(t, w.Run())
	require.Equal(t, 1, s.ends)
	require.Equal(t, 1500*time.Nanosecond, s.at)
}

func TestTrySendOfLongMessages(t *testing.T) {
	c := New(Config{Ranks: 2}).Comm(0)
	require.True(t, c.TrySend(1, 1, 0, 0, make([]byte, EagerLimit)))
	require.False(t, c.TrySend(1, 1, 0, 0, make([]byte, EagerLimit+1)))
}

// Under Random, what happens at one time happens in any order.
func TestTies(t *testing.T) {
	first := make(map[int]int)
	for seed := range uint64(100) {
		w := New(Config{Ranks: 3, Seed: seed, Model: Random{Min: 5, Max: 5}})
		r := w.recv(2, transport.Request{Peer: transport.AnySource, Tag: 1})
		w.send(0, transport.Request{Peer: 2, Tag: 1})
		w.send(1, transport.Request{Peer: 2, Tag: 1})
		require.NoError(t, w.Run())
		first[r.Status.Source]++
	}
	require.InDelta(t, 50, first[0], 20)
}

func TestTail(t *testing.T) {
	w := New(Config{Ranks: 1})
	m := Random{Min: 100, Max: 200, Tail: 0.1}
	var body, tail, long int
	for range 10000 {
		switch d := m.delay(0, w.rng); {
		case d < 100 || d > 200*tailLimit:
			t.Errorf("a delay of %v", d)
		case d <= 200:
			body++
		case d <= 2000:
			tail++
		default:
			long++
		}
	}
	require.InDelta(t, 900, tail, 150)
	require.InDelta(t, 100, long, 50)
	require.Equal(t, 10000, body+tail+long)
}
