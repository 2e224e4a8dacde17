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

// Time never goes back, although ranks are busy when messages arrive.
func TestTimeGoesOn(t *testing.T) {
	const n = 8
	w := New(Config{Ranks: n, Model: cluster})
	for r := range n {
		for k := range 10 {
			w.At(time.Duration(w.rng.IntN(20000)), r, func() {
				w.Compute(r, time.Duration(w.rng.IntN(3000)))
				w.send(r, transport.Request{Peer: (r + k) % n, Tag: 1})
			})
		}
	}
	for last := time.Duration(0); w.Step(); last = w.Now() {
		require.GreaterOrEqual(t, w.Now(), last)
	}
}

// Another rank's event may occupy the CPU of a rank that has begun to receive.
func TestComputeWhileReceiving(t *testing.T) {
	w := New(Config{Ranks: 2, Model: cluster})
	r := w.recv(1, transport.Request{Peer: 0, Tag: 1})
	w.At(0, 0, func() {
		w.send(0, transport.Request{Peer: 1, Tag: 1})
		w.Compute(0, 1100)
		w.After(0, 0, func() { w.Compute(1, 100) }) // received from 1300 to 1600
	})
	require.NoError(t, w.Run())
	require.Equal(t, 1700*time.Nanosecond, r.at)
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

// Several requests end together. When the first one completes, the program may cancel the others,
// or kill the rank.
func TestEndTogether(t *testing.T) {
	for _, kill := range []bool{false, true} {
		w := New(Config{Ranks: 2})
		c := w.Comm(0)
		var all []*noted
		told := 0
		add := func(start func(*transport.Request), r transport.Request) {
			n := w.note(0, r)
			n.Done = completed(func(*transport.Request) {
				told++
				for _, other := range all {
					require.False(t, c.Cancel(&other.Request))
				}
				if kill {
					w.Kill(0)
				}
			})
			all = append(all, n)
			start(&n.Request)
		}
		for range 2 {
			add(c.Irecv, transport.Request{Peer: 1, Tag: 1})
			add(c.Isend, transport.Request{Peer: 1, Tag: 1, Mode: transport.Synchronous})
		}
		c.Advance(0, errCause)
		require.Empty(t, transport.Pending(c))
		require.Equal(t, map[bool]int{false: 4, true: 1}[kill], told)
	}
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
