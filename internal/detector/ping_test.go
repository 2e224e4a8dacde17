package detector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// randomPings is a configuration with pings under which nobody may be accused falsely, mostly
// just so: an answer to a ping takes two latencies.
func randomPings(rng *rand.Rand) (Config, time.Duration) {
	config, latency := randomConfig(rng)
	config.Ping = true
	return config, latency / 2
}

// together is the longest time until all have been told of deaths that strike at once, and that
// the watchman survives: it finds out all of them a timeout after their last answers.
func together(c Config, n int, latency time.Duration) time.Duration {
	b := time.Duration(logarithm(n))
	return c.Timeout + (1+b+b*(b-1)/2)*latency
}

// However many die at once, and wherever they stand, that takes one timeout.
func TestPingsFindDeathsTogether(t *testing.T) {
	t.Parallel()
	for seed := range seeds(500) {
		rng := newRNG(seed)
		n := 2 + rng.IntN(40)
		config, latency := randomPings(rng)
		s := newSimulation(t, fmt.Sprintf("seed %d, %d ranks, %v, latency %v", seed, n, config, latency), rng, config, latency, n)
		s.randomDelay()
		ranks := rng.Perm(n - 1)
		if rng.IntN(2) == 0 { // in a row
			slices.Sort(ranks)
		}
		for _, r := range ranks[:1+rng.IntN(n-1)] {
			s.deaths = append(s.deaths, death{rank: r, at: settled(config)})
		}
		s.checkDeaths(together(config, n, latency))
	}
}

// The pinged ranks may die as well, and so may the rank that would take over: the ring tells.
func TestTheRingSurvivesTheWatchman(t *testing.T) {
	t.Parallel()
	for seed := range seeds(300) {
		rng := newRNG(seed)
		n := 2 + rng.IntN(20)
		config, latency := randomPings(rng)
		s := newSimulation(t, fmt.Sprintf("seed %d, %d ranks, %v, latency %v", seed, n, config, latency), rng, config, latency, n)
		s.randomDelay()
		top := 1 + rng.IntN(min(3, n-1))
		for r := n - top; r < n; r++ {
			s.deaths = append(s.deaths, death{rank: r, at: settled(config.ring()), midway: rng.IntN(2) == 0})
		}
		bound := config.ring().bound(n, top, latency)
		s.checkDeaths(bound)
		if n-top < 2 {
			continue
		}
		s.run(s.now+4*config.Timeout, nil)
		victim := rng.IntN(n - top - 1) // but not the next watchman
		s.deaths = append(s.deaths, death{rank: victim, at: s.now})
		s.checkDeaths(max(bound, together(config, n, latency)))
		require.LessOrEqual(t, s.lag[victim], together(config, n, latency), s.name)
	}
}

// While all ranks live, one rank pings all others once a period, and they answer. The heartbeats of
// the ring are four times as rare.
func TestPingTraffic(t *testing.T) {
	config := usual
	config.Ping = true
	for _, n := range []int{2, 3, 64} {
		s := newSimulation(t, fmt.Sprint(n, " ranks"), newRNG(1), config, 10*ms, n)
		s.run(settled(config.ring()), nil)
		before := slices.Clone(s.ranks)
		const periods = 100
		s.run(s.now+4*periods*config.Period, nil)
		for r := range s.ranks {
			pings, answers := 0, 4*periods
			if r == n-1 {
				pings, answers = 4*periods*(n-1), 0
			}
			require.Equal(t, pings, s.ranks[r].pings-before[r].pings, s.name)
			require.InDelta(t, periods+answers, s.ranks[r].heartbeats-before[r].heartbeats, 1, s.name)
			require.Zero(t, s.ranks[r].notices+s.ranks[r].requests, s.name)
			require.Empty(t, s.ranks[r].told, s.name)
		}
	}
}

// A rank that stands still for a while accuses nobody, be it the one that pings, and is not
// accused.
func TestLatePingsAccuseNobody(t *testing.T) {
	config, latency := Config{Period: 25 * ms, Timeout: 400 * ms, Ping: true}, 20*ms
	for seed := range seeds(100) {
		rng := newRNG(seed)
		n := 2 + rng.IntN(10)
		s := newSimulation(t, fmt.Sprintf("seed %d, %d ranks", seed, n), rng, config, latency, n)
		s.randomDelay()
		s.run(settled(config), nil)
		for range 20 {
			s.run(s.now+time.Duration(rng.Int64N(int64(config.Timeout))), nil)
			s.stall([]int{n - 1, rng.IntN(n)}[rng.IntN(2)], 300*ms)
			s.run(s.now+300*ms, nil)
		}
		require.Empty(t, s.falselyAccused(), s.name)
	}
}

// Suspects are the ranks that have not answered for half of a timeout. Other ranks may know that
// they live.
func TestSuspects(t *testing.T) {
	config := usual
	config.Ping = true
	m, err := New(config, 3, 4, 0)
	require.NoError(t, err)
	suspects := func(now time.Duration) (found []int) {
		m.Suspects(now, func(rank int) { found = append(found, rank) })
		return found
	}
	now := time.Duration(0)
	for ; now <= 6*config.Period; now += config.Period {
		m.Tick(now)
		for _, r := range []int{0, 2} {
			if now <= 3*config.Period {
				require.NoError(t, m.Step(now, r, Message{Kind: Heartbeat}))
			}
		}
		switch now {
		case 4 * config.Period:
			require.Empty(t, suspects(now))
		case 5 * config.Period:
			require.Equal(t, []int{0, 2}, suspects(now))
		}
	}
	require.Equal(t, []int{0, 1, 2}, suspects(now)) // 1 had twice the time at the start
	require.NoError(t, m.Step(now, 0, Message{Kind: Heartbeat}))
	require.NoError(t, m.Step(now, 1, Message{Kind: Heartbeat}))
	require.Equal(t, []int{2}, suspects(now))
	m.Tick(now)
	require.True(t, m.Dead(2))
	require.False(t, m.Dead(0) || m.Dead(1))
}
