package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// slowly returns a Detect: survivor k learns of a death k+1 milliseconds after it.
func slowly() func(*rand.Rand) time.Duration {
	k := time.Duration(0)
	return func(*rand.Rand) time.Duration { k++; return k * time.Millisecond }
}

type watcher func(rank int)

func (f watcher) Died(rank int)                           { f(rank) }
func (f watcher) Take(int, []byte)                        {}
func (f watcher) Next() (to int, payload []byte, ok bool) { return 0, nil, false }
func (f watcher) Purpose([]byte) string                   { return "" }

// Every rank learns of a death at a different time, and its requests that need the dead rank end
// only then.
func TestLateDetection(t *testing.T) {
	const victim = 2
	w := New(Config{Ranks: 4, Model: cluster, Detect: slowly()})
	type requests struct {
		named, operation, anybody, other, unmatched *noted
		heard                                       time.Duration
	}
	ranks := make([]requests, 4)
	for r := range ranks {
		own := &ranks[r]
		w.At(0, r, func() {
			w.Comm(r).Listen(watcher(func(dead int) {
				require.Equal(t, victim, dead)
				require.Zero(t, own.named.ends+int(own.heard))
				own.heard = w.RankNow(r)
			}))
			own.named = w.recv(r, transport.Request{Peer: victim, Tag: 1})
			own.operation = w.recv(r, transport.Request{Peer: (r + 1) % 2, Tag: -2})
			own.anybody = w.recv(r, transport.Request{Peer: transport.AnySource, Tag: 1})
			own.other = w.recv(r, transport.Request{Peer: (r + 1) % 2, Tag: 1})
			own.unmatched = w.send(r, transport.Request{Peer: victim, Tag: 7, Mode: transport.Synchronous})
		})
	}
	w.KillAt(5000, victim)
	require.NoError(t, w.Run())
	for r, own := range ranks {
		var pending []*transport.Request
		if r != victim {
			pending = []*transport.Request{&own.anybody.Request, &own.other.Request}
			detected := time.Duration(min(r, victim)+1) * time.Millisecond
			require.Equal(t, 5000+detected, own.heard)
		}
		require.ElementsMatch(t, pending, transport.Pending(w.Comm(r)))
		for _, q := range []*noted{own.named, own.operation, own.unmatched} {
			if r == victim {
				require.Zero(t, q.ends)
				continue
			}
			require.Equal(t, 1, q.ends)
			require.Equal(t, &transport.DeadError{Rank: victim}, q.Err)
			require.Equal(t, own.heard, q.at)
		}
	}

	// New operations of ranks that know end at once; operations that do not need the dead rank
	// continue.
	require.Equal(t, &transport.DeadError{Rank: victim}, w.send(0, transport.Request{Peer: victim, Tag: 3}).Err)
	require.Equal(t, &transport.DeadError{Rank: victim}, w.recv(0, transport.Request{Peer: victim, Tag: 3}).Err)
	require.Equal(t, &transport.DeadError{Rank: victim}, w.send(0, transport.Request{Peer: 1, Tag: -2}).Err)
	require.False(t, w.Comm(0).TrySend(victim, 3, 0, 0, nil))
	told := 0
	w.Comm(0).Listen(watcher(func(dead int) { told += dead }))
	require.Equal(t, victim, told)
	w.send(0, transport.Request{Peer: 1, Tag: 1})
	require.NoError(t, w.Run())
	require.Equal(t, 1, ranks[1].anybody.ends)
}

// Messages of a dead rank that have arrived can be received, even by a rank that knows of the
// death.
func TestReceiveFromTheDead(t *testing.T) {
	w := New(Config{Ranks: 2, Model: Random{Min: 10 * time.Millisecond, Max: 10 * time.Millisecond}, Detect: slowly()})
	w.At(0, 0, func() {
		for range 2 {
			w.send(0, transport.Request{Peer: 1, Tag: 1, Buf: []byte("last words")})
		}
		w.send(0, transport.Request{Peer: 1, Tag: 2, Buf: make([]byte, 2*EagerLimit)})
	})
	early := w.recv(1, transport.Request{Peer: 0, Tag: 1, Take: true})
	w.KillAt(1, 0)
	require.NoError(t, w.Run())
	require.Equal(t, &transport.DeadError{Rank: 0}, early.Err, "told before the message came")
	for range 2 {
		require.Equal(t, "last words", string(w.recv(1, transport.Request{Peer: 0, Tag: 1, Take: true}).Buf))
	}
	require.Len(t, w.recv(1, transport.Request{Peer: transport.AnySource, Tag: 2, Take: true}).Buf, 2*EagerLimit)
	require.Equal(t, &transport.DeadError{Rank: 0}, w.recv(1, transport.Request{Peer: 0, Tag: 1}).Err)
	require.NoError(t, w.Run(), "nobody is left to be told")
}

// Some of the messages under way are lost: for each receiver, all from some message on.
func TestLoseInFlight(t *testing.T) {
	const n, each = 5, 20
	lengths := make(map[int]int)
	for seed := range uint64(200) {
		w := New(Config{Ranks: n, Seed: seed, Model: Random{Max: 100}, LoseInFlight: 0.2})
		w.At(10, 0, func() {
			for k := range each {
				for to := 1; to < n; to++ {
					require.True(t, w.Comm(0).TrySend(to, k, 0, 0, nil))
				}
			}
			w.Kill(0)
		})
		require.NoError(t, w.Run())
		for r := 1; r < n; r++ {
			got := 0
			for q := w.recv(r, transport.Request{Peer: 0, Tag: transport.AnyTag}); q.Err == nil; q = w.recv(r, transport.Request{Peer: 0, Tag: transport.AnyTag}) {
				require.Equal(t, got, q.Status.Tag)
				got++
			}
			lengths[got]++
		}
	}
	require.InDelta(t, 0.2*800, lengths[0], 50)
	require.InDelta(t, 0.2*0.8*800, lengths[1], 50)
	require.Greater(t, lengths[each], 1)
}

// A dead rank runs nothing, and a rank that dies in the middle of sending has sent only the first
// messages.
func TestDeathInTheMiddle(t *testing.T) {
	for sent := range 5 {
		w := New(Config{Ranks: 6, Model: cluster})
		gap := max(cluster.Overhead, cluster.Gap)
		w.At(0, 0, func() {
			for to := 1; to < 6; to++ {
				w.send(0, transport.Request{Peer: to, Tag: 1})
			}
		})
		w.After(5000, 0, func() { t.Error("runs after its death") })
		w.KillAt(cluster.Overhead+time.Duration(sent)*gap-1, 0)
		require.NoError(t, w.Run())
		for r := 1; r < 6; r++ {
			q := w.recv(r, transport.Request{Peer: 0, Tag: 1})
			require.Equal(t, r <= sent, q.Err == nil, "%d messages, rank %d", sent, r)
		}
	}
}

// Messages that a rank sends before it kills itself are under way.
func TestDieAfterSending(t *testing.T) {
	for _, die := range []func(w *World){func(w *World) { w.Kill(0) }, func(w *World) { w.Comm(0).Die() }} {
		w := New(Config{Ranks: 3, Model: cluster})
		w.At(0, 0, func() {
			c := w.Comm(0)
			pending := w.recv(0, transport.Request{Peer: 1, Tag: 1})
			w.send(0, transport.Request{Peer: 1, Tag: 1})
			w.send(0, transport.Request{Peer: 2, Tag: 1})
			die(w)
			require.True(t, w.Dead(0))
			require.Zero(t, w.send(0, transport.Request{Peer: 1, Tag: 1}).ends)
			require.False(t, c.TrySend(1, 1, 0, 0, nil))
			require.False(t, c.Cancel(&pending.Request))
			c.Advance(0, fmt.Errorf("an error"))
			c.Revoke(fmt.Errorf("an error"))
			_, err := c.Sub(transport.Name{}, nil)
			require.Equal(t, transport.ErrDied, err)
			require.Zero(t, pending.ends)
			require.Empty(t, transport.Pending(c))
			c.Leave(false)
			c.Die()
		})
		w.At(100, 0, func() { t.Error("runs after its death") })
		w.Comm(1).Leave(false)
		require.NoError(t, w.Run())
		require.Equal(t, 2, w.Messages())
		require.Equal(t, 1, w.Left())
		for r := 1; r < 3; r++ {
			require.NoError(t, w.recv(r, transport.Request{Peer: 0, Tag: 1}).Err)
			require.Error(t, w.recv(r, transport.Request{Peer: 0, Tag: 1}).Err)
		}
	}
}

// A match counts only if it came, by the receiver's clock, before the receiver's death.
func TestDeathOfAReceiver(t *testing.T) {
	for _, died := range []time.Duration{2599, 2600} { // overhead, latency, overhead, and a second one
		w := New(Config{Ranks: 2, Model: LogGP{Latency: 2000, Overhead: 200}})
		var s *noted
		w.At(0, 0, func() { s = w.send(0, transport.Request{Peer: 1, Tag: 1, Mode: transport.Synchronous}) })
		w.At(0, 1, func() {
			n := w.note(1, transport.Request{Peer: 0, Tag: 1})
			n.Done = completed(func(*transport.Request) {
				w.send(1, transport.Request{Peer: 1, Tag: 1})
				w.Comm(1).Irecv(&w.note(1, transport.Request{Peer: 0, Tag: 1}).Request)
			})
			w.Comm(1).Probe(&n.Request)
		})
		w.KillAt(died, 1)
		require.NoError(t, w.Run())
		require.Equal(t, 1, s.ends)
		if died < 2600 {
			require.Equal(t, &transport.DeadError{Rank: 1}, s.Err)
		} else {
			require.NoError(t, s.Err)
			require.Equal(t, time.Duration(4600), s.at)
		}
	}
}

// A message that arrived before its sender's death was not under way, even if the sender's clock
// was ahead.
func TestArrivedBeforeDeath(t *testing.T) {
	w := New(Config{Ranks: 2, Model: cluster, LoseInFlight: 1})
	r := w.recv(1, transport.Request{Peer: 0, Tag: 1})
	w.At(0, 0, func() {
		w.send(0, transport.Request{Peer: 1, Tag: 1})
		w.Compute(0, time.Second)
		w.send(0, transport.Request{Peer: 1, Tag: 1})
		w.Comm(0).Die()
	})
	require.NoError(t, w.Run())
	require.NoError(t, r.Err)
	require.Error(t, w.recv(1, transport.Request{Peer: 0, Tag: 1}).Err)
}
