package detector

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
		s := randomSimulation(t, seed, 41, true)
		n := len(s.ranks)
		ranks := s.rng.Perm(n - 1)
		if s.rng.IntN(2) == 0 { // in a row
			slices.Sort(ranks)
		}
		for _, r := range ranks[:1+s.rng.IntN(n-1)] {
			s.deaths = append(s.deaths, death{rank: r, at: settled(s.config)})
		}
		s.checkDeaths(together(s.config, n, s.latency))
	}
}

// The pinged ranks may die as well, and so may the rank that would take over: the ring tells.
func TestTheRingSurvivesTheWatchman(t *testing.T) {
	t.Parallel()
	for seed := range seeds(300) {
		s := randomSimulation(t, seed, 21, true)
		rng, config, n := s.rng, s.config, len(s.ranks)
		top := 1 + rng.IntN(min(3, n-1))
		for r := n - top; r < n; r++ {
			s.deaths = append(s.deaths, death{rank: r, at: settled(config.ring()), midway: rng.IntN(2) == 0})
		}
		bound := config.ring().bound(n, top, s.latency)
		s.checkDeaths(bound)
		if n-top < 2 {
			continue
		}
		s.run(s.now+4*config.Timeout, nil)
		victim := rng.IntN(n - top - 1) // but not the next watchman
		s.deaths = append(s.deaths, death{rank: victim, at: s.now})
		s.checkDeaths(max(bound, together(config, n, s.latency)))
		require.LessOrEqual(t, s.lag[victim], together(config, n, s.latency), s.name)
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
