package detector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A rank that stands still, or whose messages are late, is dead to all after a
// timeout. It learns that, and says nothing more; all others live.
func TestStalledRankIsDead(t *testing.T) {
	for seed := range seeds(300) {
		n, latency := 3+int(seed%30), 20*ms
		s := settledSimulation(t, seed, n, latency)
		rng, stalled := s.rng, s.rng.IntN(n)
		if rng.IntN(2) == 0 {
			s.stall(stalled, usual.bound(n, 1, latency)+time.Duration(rng.Int64N(int64(time.Second))))
		} else { // the rank runs, but its messages to the others are late
			until := s.now + usual.bound(n, 1, latency) + time.Second
			s.delay = func(from, _ int) time.Duration {
				if from == stalled && s.now < until {
					return until - s.now
				}
				return time.Duration(rng.Int64N(int64(latency)))
			}
		}
		s.run(s.now+usual.bound(n, 1, latency), nil)
		for r := range s.ranks {
			require.True(t, r == stalled || s.ranks[r].Dead(stalled), "%s: rank %d", s.name, r)
		}
		s.run(s.now+3*time.Second, nil)
		for r := range s.ranks {
			require.Equal(t, map[int]bool{stalled: true}, s.ranks[r].told, "%s: rank %d", s.name, r)
		}
		requireSilent(t, s.ranks[stalled].Machine, s.now)
	}
}

func requireSilent(t *testing.T, m *Machine, now time.Duration) {
	t.Helper()
	require.True(t, m.Dead(m.rank))
	require.Equal(t, Never, m.Deadline())
	m.Tick(now)
	require.NoError(t, m.Step(now, (m.rank+1)%m.size, Message{Kind: newObserver}))
	require.Empty(t, m.Output())
}

// No matter which ranks time out, the survivors agree on which ranks survive, and a rank that
// others have declared dead falls silent.
func TestSurvivorsAgree(t *testing.T) {
	t.Parallel()
	for seed := range seeds(200) {
		s := settledSimulation(t, seed, 2+int(seed%30), 20*ms)
		rng := s.rng
		until, rare := s.now+time.Second, 3+rng.IntN(1000)
		s.delay = func(int, int) time.Duration { // beyond any timeout, for a while
			if s.now < until && rng.IntN(rare) == 0 {
				return time.Duration(rng.Int64N(int64(8 * usual.Timeout)))
			}
			return time.Duration(rng.Int64N(int64(20 * ms)))
		}
		s.run(until+10*time.Second, nil)
		silent := make(map[int]bool)
		for r := range s.ranks {
			if s.ranks[r].silent {
				silent[r] = true
			}
		}
		for r := range s.ranks {
			if !silent[r] {
				require.Equal(t, silent, s.ranks[r].told, "%s: rank %d", s.name, r)
			}
		}
	}
}

// An observer that stands still accuses nobody: neither if that is too short to be
// noticed, nor if the emitter's heartbeats wait behind its late Tick. With pings the same goes for
// the rank that pings.
func TestLateTicksAccuseNobody(t *testing.T) {
	for _, c := range []struct {
		config         Config
		latency, stall time.Duration
		pause          time.Duration // at least, from one stall to the next
	}{
		{usual, 25 * ms, usual.Period + usual.slack(), usual.Timeout},
		// A rank's heartbeats come up to 345 ms apart, and then meet an observer that
		// stands still itself.
		{Config{Period: 25 * ms, Timeout: 400 * ms}, 20 * ms, 300 * ms, 0},
		{Config{Period: 25 * ms, Timeout: 400 * ms, Ping: true}, 20 * ms, 300 * ms, 0},
	} {
		for seed := range seeds(100) {
			rng := newRNG(seed)
			n := 2 + rng.IntN(10)
			s := newSimulation(t, fmt.Sprintf("seed %d, %d ranks, %v", seed, n, c.config), rng, c.config, c.latency, n)
			s.randomDelay()
			s.run(settled(c.config), nil)
			for range 20 {
				s.run(s.now+c.pause+time.Duration(rng.Int64N(int64(c.config.Timeout))), nil)
				s.stall([]int{n - 1, rng.IntN(n)}[rng.IntN(2)], c.stall)
				s.run(s.now+c.stall, nil)
			}
			require.Empty(t, s.falselyAccused(), s.name)
		}
	}
}

// The same by hand: an emitter whose timeout ended while its observer stood still
// is given another, eight times. Then it is accused.
func TestDoubtIsLimited(t *testing.T) {
	for _, first := range []string{"tick", "heartbeat from elsewhere", "request"} {
		t.Run(first, func(t *testing.T) {
			m, err := New(usual, 1, 3, 0)
			require.NoError(t, err)
			now := m.Deadline()
			m.Tick(now)
			require.NoError(t, m.Step(now, 0, Message{Kind: Heartbeat}))
			m.Output()
			for i := range maxScore {
				now += usual.Timeout + 1 // the heartbeat is late, the timeout just so
				switch first {
				case "heartbeat from elsewhere":
					require.NoError(t, m.Step(now, 2, Message{Kind: Heartbeat}))
				case "request":
					require.NoError(t, m.Step(now, 2, Message{Kind: newObserver}))
				}
				m.Tick(now)
				require.Equal(t, i+1, m.score, "once a stall")
				require.False(t, m.Dead(0))
				require.Equal(t, now+usual.Timeout, m.suspectAt)
			}
			m.Tick(now + usual.Timeout + 1)
			require.True(t, m.Dead(0))
		})
	}
}

// Trust comes back with each period in which the emitter is heard, and shortens the timeout.
func TestTrustComesBack(t *testing.T) {
	m, err := New(usual, 1, 3, 0)
	require.NoError(t, err)
	now := usual.slack() + 1
	m.Tick(now)
	require.Equal(t, 1, m.score)
	for range 10 {
		require.NoError(t, m.Step(now, 0, Message{Kind: Heartbeat}))
	}
	require.Equal(t, 1, m.score)
	require.Equal(t, now+2*usual.Timeout, m.suspectAt)
	now = m.Deadline()
	m.Tick(now)
	require.Zero(t, m.score)
	require.NoError(t, m.Step(now, 0, Message{Kind: Heartbeat}))
	require.Equal(t, now+usual.Timeout, m.suspectAt)
}

// A rank that writes to one by which it is held for dead is told so.
func TestZombieIsAnswered(t *testing.T) {
	m, err := New(usual, 0, 8, 0)
	require.NoError(t, err)
	require.NoError(t, m.Step(1, 4, Message{Kind: Notice, first: 2, last: 3}))
	require.Equal(t, []Output{{Died: 2}, {Died: 3}}, m.Output()[:2])
	for _, msg := range []Message{
		{Kind: Heartbeat}, {Kind: newObserver}, {Kind: Notice, first: 5, last: 6}, {Kind: Notice, first: 0, last: 1},
		side{5, 0}.answer(), side{6, 3}.answer(),
	} {
		require.NoError(t, m.Step(2, 3, msg))
		require.Equal(t, []Output{{To: 3, Message: side{6, 0}.answer()}}, m.Output())
	}
	require.False(t, m.Dead(5), "the dead are not believed")
	require.NoError(t, m.Step(2, 3, side{7, 3}.answer()), "but if theirs is the greater side")
	require.Equal(t, []Output{{Died: 0}}, m.Output())
	requireSilent(t, m, 3)
}

// A death that is known from elsewhere is told once, like one that the detector finds.
func TestLose(t *testing.T) {
	s := settledSimulation(t, 1, 40, 20*ms)
	s.deaths = []death{{rank: 7, at: s.now}}
	s.run(s.now, nil)
	for _, witness := range []int{20, 30} {
		s.ranks[witness].Lose(s.now, 7)
		s.carryOut(witness)
	}
	s.run(s.now+time.Duration(logarithm(40))*20*ms, s.complete)
	require.True(t, s.complete())
	before := s.ranks[20].notices
	s.ranks[20].Lose(s.now, 7)
	s.carryOut(20)
	require.Equal(t, before, s.ranks[20].notices)
	s.ranks[20].Lose(s.now, 20)
	require.False(t, s.ranks[20].Dead(20))
}

// A network that falls apart for long has two sides that continue. When it is whole again, the
// greater one lives on, and the other falls silent.
func TestGreaterSideGoesOn(t *testing.T) {
	t.Parallel()
	for seed := range seeds(200) {
		n := 2 + int(seed%20)
		s := settledSimulation(t, seed, n, 20*ms)
		rng := s.rng
		cut := 1 + rng.IntN(n-1) // ranks below it are on one side
		apart := func(rank int) bool { return rank < cut }
		if rng.IntN(2) == 0 { // as equals, in turn
			cut = (n + 1) / 2
			apart = func(rank int) bool { return rank%2 == 0 }
		}
		goesOn := cut*2 >= n // rank 0's side
		oneWay := rng.IntN(3) == 0
		s.name += fmt.Sprintf(", %d are cut off, one way: %v", cut, oneWay)
		until := s.now + usual.bound(n, n, 20*ms)
		s.delay = func(from, to int) time.Duration {
			if s.now < until && apart(from) != apart(to) && (!oneWay || apart(from)) {
				return until - s.now
			}
			return time.Duration(rng.Int64N(int64(20 * ms)))
		}
		s.run(until-1, nil)
		if !oneWay {
			for r := range s.ranks {
				for other := range s.ranks {
					require.Equal(t, apart(r) != apart(other), s.ranks[r].Dead(other), "%s: rank %d of %d", s.name, r, other)
				}
			}
		}
		s.run(until+10*time.Second, nil)
		var living []int
		for r := range s.ranks {
			if !s.ranks[r].silent {
				living = append(living, r)
			}
			if !oneWay {
				require.Equal(t, apart(r) != goesOn, s.ranks[r].silent, "%s: rank %d", s.name, r)
			}
		}
		for _, r := range living {
			require.Len(t, s.ranks[r].told, n-len(living), "%s: rank %d", s.name, r)
		}
	}
}
