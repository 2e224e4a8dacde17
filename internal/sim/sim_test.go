package sim

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	cluster = LogGP{Latency: 1000, Overhead: 300, Gap: 400, GapPerByte: 0.5}
	wild    = Random{Min: time.Microsecond, Max: 50 * time.Microsecond, Tail: 0.1}
)

// ended is called when an operation ends.
type ended func(error)

func (f ended) Ended(err error) { f(err) }

// completed is called when a request ends.
type completed func(*transport.Request)

func (f completed) Completed(r *transport.Request) { f(r) }

// note returns a request that notes how it ended, and when.
func (w *World) note(rank int, r transport.Request) *noted {
	n := &noted{Request: r}
	n.Done = completed(func(*transport.Request) {
		n.ends++
		n.at = w.RankNow(rank)
	})
	return n
}

type noted struct {
	transport.Request
	ends int
	at   time.Duration
}

func (w *World) send(from int, r transport.Request) *noted {
	n := w.note(from, r)
	w.Comm(from).Isend(&n.Request)
	return n
}

func (w *World) recv(at int, r transport.Request) *noted {
	n := w.note(at, r)
	w.Comm(at).Irecv(&n.Request)
	return n
}

// collect runs an operation at all ranks and returns when it ended at each.
func collect(t *testing.T, w *World, n int, a func(rank int) collective.Algorithm) []time.Duration {
	at := make([]time.Duration, n)
	for r := range n {
		w.At(0, r, func() {
			c := w.Comm(r)
			new(collective.Exchange).Start(c, c.Epoch(), -2, a(r), ended(func(err error) {
				require.NoError(t, err)
				require.Zero(t, at[r], "rank %d is done twice", r)
				at[r] = w.RankNow(r)
			}))
		})
	}
	require.NoError(t, w.Run())
	for r := range n {
		if n > 1 {
			require.NotZero(t, at[r], "rank %d is not done", r)
		}
		require.Empty(t, transport.Pending(w.Comm(r)))
	}
	return at
}

// A barrier ends at no rank before the last one has begun it. All messages are counted.
func TestBarrierWaitsForTheLast(t *testing.T) {
	w := New(Config{Ranks: 5, Model: wild})
	w.At(0, 3, func() { w.Compute(3, time.Second) })
	for _, at := range collect(t, w, 5, func(int) collective.Algorithm { return collective.Barrier{} }) {
		require.GreaterOrEqual(t, at, time.Second)
	}
	require.Equal(t, 2*4, w.Messages())
	require.Equal(t, w.Messages(), w.Sent(0)+w.Sent(1)+w.Sent(2)+w.Sent(3)+w.Sent(4))
}

// Each way takes an overhead, the latency with the bytes, and an overhead.
func TestPingTime(t *testing.T) {
	w := New(Config{Ranks: 2, Model: cluster})
	ping, pong := make([]byte, 100), make([]byte, 200)
	var sent, back *noted
	w.At(0, 1, func() {
		n := w.note(1, transport.Request{Peer: 0, Tag: 1, Buf: ping})
		n.Done = completed(func(*transport.Request) {
			require.Equal(t, time.Duration(300+1000+50+300), w.RankNow(1))
			w.send(1, transport.Request{Peer: 0, Tag: 1, Buf: pong})
		})
		w.Comm(1).Irecv(&n.Request)
	})
	w.At(0, 0, func() {
		back = w.recv(0, transport.Request{Peer: 1, Tag: 1, Buf: pong})
		sent = w.send(0, transport.Request{Peer: 1, Tag: 1, Buf: ping})
	})
	require.NoError(t, w.Run())
	require.Equal(t, time.Duration(300), sent.at)
	require.Equal(t, time.Duration(1650+300+1000+100+300), back.at)
	require.Equal(t, 1, back.ends)
}

// Consecutive messages leave one gap and the earlier message's bytes apart. A busy receiver takes
// them one after the other.
func TestGapAndOccupancy(t *testing.T) {
	var at []time.Duration
	m := LogGP{Latency: 1000, Overhead: 100, Gap: 400, GapPerByte: 1}
	for _, busy := range []time.Duration{0, 5000} {
		w := New(Config{Ranks: 2, Model: m})
		at = nil
		w.At(0, 1, func() {
			for range 3 {
				n := w.note(1, transport.Request{Peer: 0, Tag: 1, Buf: make([]byte, 10)})
				n.Done = completed(func(*transport.Request) { at = append(at, w.RankNow(1)) })
				w.Comm(1).Irecv(&n.Request)
			}
			w.Compute(1, busy)
		})
		w.At(0, 0, func() {
			for range 3 {
				w.send(0, transport.Request{Peer: 1, Tag: 1, Buf: make([]byte, 10)})
			}
			require.Equal(t, time.Duration(300), w.RankNow(0), "the CPU does not wait for the gap")
		})
		require.NoError(t, w.Run())
		if busy == 0 { // the messages leave at 100, 510 and 920
			require.Equal(t, []time.Duration{1210, 1620, 2030}, at)
		} else {
			require.Equal(t, []time.Duration{5100, 5200, 5300}, at)
		}
	}
}

func trace(t *testing.T, seed uint64, model Model) string {
	var b bytes.Buffer
	w := New(Config{Ranks: 20, Seed: seed, Model: model, Trace: &b, LoseInFlight: 0.9})
	for r := range 20 {
		w.At(time.Duration(r), r, func() {
			c := w.Comm(r)
			new(collective.Exchange).Start(c, 0, -2, collective.Barrier{}, ended(func(error) {}))
			w.recv(r, transport.Request{Peer: transport.AnySource, Tag: 1, Buf: make([]byte, 10)})
			w.send(r, transport.Request{Peer: (r + 7) % 20, Tag: 1, Buf: make([]byte, r%10), Mode: transport.Synchronous})
			w.send(r, transport.Request{Peer: (r + 3) % 20, Tag: 1, Buf: make([]byte, r%10)})
		})
	}
	w.KillAt(3*time.Microsecond, 7)
	w.KillAt(5*time.Microsecond, 8)
	require.NoError(t, w.Run())
	return b.String()
}

func TestSameSeedSameRun(t *testing.T) {
	for _, model := range []Model{cluster, wild} {
		first := trace(t, 1, model)
		require.Equal(t, first, trace(t, 1, model))
		require.NotEqual(t, first, trace(t, 2, model))
		for _, line := range []string{"runs", "dies", "learns that 8 has died", "send 3 -> 6 tag 1, 3 bytes", "gets 3 -> 6 tag 1, 3 bytes", "never gets "} {
			require.Contains(t, first, line)
		}
	}
}

func TestTimers(t *testing.T) {
	w := New(Config{Ranks: 1})
	var at []time.Duration
	w.At(10, 0, func() {
		w.Compute(0, 5)
		w.After(3, 0, func() { at = append(at, w.Now(), w.RankNow(0)) })
		w.At(12, 0, func() { at = append(at, w.Now()); w.Compute(0, 100) })
	})
	require.NoError(t, w.Run())
	require.Equal(t, []time.Duration{15, 115, 115}, at)
}

func TestLivelockIsAnError(t *testing.T) {
	w := New(Config{Ranks: 1, Events: 1000})
	var again func()
	again = func() { w.After(1, 0, again) }
	again()
	require.ErrorContains(t, w.Run(), "1000 events")
}

// Combining occupies a rank's CPU, and noise lengthens overheads by Jitter on average. In both
// cases nothing else changes.
func TestCombiningAndJitter(t *testing.T) {
	run := func(seed uint64, m LogGP) (last time.Duration) {
		w := New(Config{Ranks: 16, Seed: seed, Model: m, Weightless: true})
		buf := make([]byte, 1000)
		for _, at := range collect(t, w, 16, func(r int) collective.Algorithm {
			return collective.AllreduceDoubling(collective.Reduction{Recv: buf, Op: func(dst, _, _ []byte) {
				w.Compute(r, m.Combining(len(dst)))
			}})
		}) {
			last = max(last, at)
		}
		return last
	}
	m := LogGP{Latency: 1000, Overhead: 300, GapPerByte: 0.5}
	const round = 300 + 1000 + 500 + 300
	require.Equal(t, time.Duration(4*round), run(0, m))
	m.CombinePerByte = 0.2
	require.Equal(t, time.Duration(4*(round+200)), run(0, m))
	require.Equal(t, "LogGP with L=1µs, o=300ns, g=0s, G=0.5ns, γ=0.2ns", m.String())

	m.Jitter = 100
	require.Equal(t, run(1, m), run(1, m))
	sum := time.Duration(0)
	for seed := range uint64(100) {
		sum += run(seed, m)
	}
	mean := sum / 100 // for the last of 16 ranks: more than eight times the average
	require.Greater(t, mean, time.Duration(4*(round+200)+8*100))
	require.Less(t, mean, time.Duration(4*(round+200)+8*500))
}
