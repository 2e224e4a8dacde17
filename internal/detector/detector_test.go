package detector

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
)

const ms = time.Millisecond

// usual is a configuration as Config recommends it, for a latency up to 25 ms.
var usual = Config{Period: 25 * ms, Timeout: 100 * ms}

func logarithm(n int) int { return bits.Len(uint(n - 1)) }

// settled is long after the start: everybody has heard its emitter.
func settled(c Config) time.Duration { return 4 * c.Timeout }

// seeds returns how many of most seeds to run.
func seeds(most uint64) uint64 {
	if buildtags.Race {
		return most / 5
	}
	return most
}

func newRNG(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// randomConfig is one under which nobody may be accused falsely, mostly just so,
// with all latencies from almost none to almost the timeout.
func randomConfig(rng *rand.Rand) (Config, time.Duration) {
	period := 1 + time.Duration(rng.Int64N(int64(20*ms)))
	latency := time.Duration(rng.Int64N(int64(20 * ms)))
	if rng.IntN(2) == 0 {
		latency /= 100
	}
	timeout := period + latency + 1
	if rng.IntN(3) == 0 {
		timeout += time.Duration(rng.Int64N(int64(20 * ms)))
	}
	// Runs with many periods a timeout take long and find nothing.
	return Config{Period: max(period, timeout/10), Timeout: timeout + timeout/10}, latency
}

// randomSimulation is one of 2 to most ranks with a random configuration, and one of several ways
// for messages to be late. With pings an answer takes two latencies.
func randomSimulation(t *testing.T, seed uint64, most int, ping bool) *simulation {
	rng := newRNG(seed)
	n := 2 + rng.IntN(most-1)
	config, latency := randomConfig(rng)
	if config.Ping = ping; ping {
		latency /= 2
	}
	s := newSimulation(t, fmt.Sprintf("seed %d, %d ranks, %v, latency %v", seed, n, config, latency), rng, config, latency, n)
	s.randomDelay()
	return s
}

// settledSimulation is one of n ranks with the usual configuration, long after its start.
func settledSimulation(t *testing.T, seed uint64, n int, latency time.Duration) *simulation {
	s := newSimulation(t, fmt.Sprintf("seed %d, %d ranks", seed, n), newRNG(seed), usual, latency, n)
	s.run(settled(usual), nil)
	return s
}

// randomDelay is one of several ways for messages to be late.
func (s *simulation) randomDelay() {
	links := make(map[[2]int]time.Duration)
	switch s.rng.IntN(4) {
	case 0: // as late as can be
		s.delay = func(int, int) time.Duration { return s.latency }
	case 1: // either late or not
		s.delay = func(int, int) time.Duration { return s.latency * time.Duration(s.rng.IntN(2)) }
	case 2: // the same for all messages of a pair
		s.delay = func(from, to int) time.Duration {
			pair := [2]int{from, to}
			if _, ok := links[pair]; !ok {
				links[pair] = time.Duration(s.rng.Int64N(int64(s.latency) + 1))
			}
			return links[pair]
		}
	}
}

// randomDeaths are of up to all ranks but one.
func (s *simulation) randomDeaths() {
	rng, start, n := s.rng, settled(s.config), len(s.ranks)
	deaths := 1 + rng.IntN(n-1)
	switch rng.IntN(4) {
	case 0:
		deaths = min(deaths, 1+rng.IntN(4))
	case 1:
		deaths = n - 1
	}
	ranks := rng.Perm(n)
	if rng.IntN(2) == 0 { // in a row: each is the observer of the one before it
		first := rng.IntN(n)
		for i := range ranks {
			ranks[i] = (first + i) % n
		}
	}
	// All at once, at some moments, in the order of the ranks about when the one
	// before would be found dead.
	window := []time.Duration{1, s.config.Timeout, time.Duration(deaths) * s.config.Timeout}[rng.IntN(3)]
	cascade := rng.IntN(3) == 0
	at := start
	for _, r := range ranks[:deaths] {
		if cascade {
			at += s.config.Timeout + time.Duration(rng.Int64N(int64(s.config.Timeout)))
		} else {
			at = start + time.Duration(rng.Int64N(int64(window)))
		}
		s.deaths = append(s.deaths, death{rank: r, at: at, midway: rng.IntN(4) == 0})
	}
	slices.SortFunc(s.deaths, func(a, b death) int { return cmp.Compare(a.at, b.at) })
}

// checkDeaths runs the simulation and requires that every survivor is told of
// every death in time, and of nothing else.
func (s *simulation) checkDeaths(bound time.Duration) {
	t := s.t
	s.run(s.deaths[len(s.deaths)-1].at+s.config.Period+bound, s.complete)
	require.True(t, s.complete(), "%s: not all have been told within %v", s.name, bound)
	for r, lag := range s.lag {
		require.LessOrEqual(t, lag, bound, "%s: the last told that rank %d died", s.name, r)
	}
	s.run(s.now+3*s.config.Timeout, nil)
	require.Empty(t, s.falselyAccused(), s.name)
}

// Every survivor is told of every death within the bound, and nobody is accused
// who lives: any number of ranks, deaths, latencies.
func TestDeathsWithinBound(t *testing.T) {
	for part := range 4 {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for i := range seeds(750) {
				most := 16
				if i%10 == 0 {
					most = 64
				}
				s := randomSimulation(t, 4*i+uint64(part), most, false)
				s.randomDeaths()
				s.checkDeaths(s.config.bound(len(s.ranks), len(s.deaths), s.latency))
			}
		})
	}
}

// A single death in a settled ring has a bound of its own: so have several, each struck when the
// one before was settled. No rank sends more than logarithmically many notices.
func TestSingleDeaths(t *testing.T) {
	t.Parallel()
	for seed := range seeds(300) {
		s := randomSimulation(t, seed, 64, false)
		n := len(s.ranks)
		bound := s.config.bound(n, 1, s.latency)
		at := settled(s.config)
		for _, r := range s.rng.Perm(n)[:min(n-1, 4)] {
			s.deaths = append(s.deaths, death{rank: r, at: at})
			at += bound + 2*s.latency
		}
		s.checkDeaths(bound)
		most := 0
		for f := 1; f <= len(s.deaths); f++ {
			most += 2*logarithm(n) + 2*f*f // f places may have a dead rank's, in each direction
		}
		for r := range s.ranks {
			require.LessOrEqual(t, s.ranks[r].notices, most, "%s: rank %d", s.name, r)
		}
	}
}

// The start is like one more death that is not settled.
func TestDeathAtTheStart(t *testing.T) {
	for seed := range seeds(200) {
		s := randomSimulation(t, seed, 21, false)
		n := len(s.ranks)
		s.deaths = []death{{rank: s.rng.IntN(n), at: time.Duration(s.rng.Int64N(int64(s.config.Timeout)))}}
		s.checkDeaths(s.config.bound(n, 2, s.latency))
	}
}

// The bound of one death is met exactly where the graph has no shorter paths: the
// rank dies just after a heartbeat, and all messages are as late as can be.
func TestBoundIsTight(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		latency := 20 * ms
		s := newSimulation(t, fmt.Sprint(n, " ranks"), newRNG(1), usual, latency, n)
		s.delay = func(int, int) time.Duration { return latency }
		s.run(settled(usual), nil)
		s.deaths = []death{{rank: 1, at: s.ranks[1].beatAt + 1}}
		bound := usual.bound(n, 1, latency)
		s.checkDeaths(bound)
		require.Equal(t, bound-1, s.lag[1], s.name)
	}
}

// Survivors a multiple of three apart: no two are neighbours in the binomial graph
// of all ranks, so that the paths between them are made of replaced neighbours.
func TestNoEdgeSurvives(t *testing.T) {
	const n = 3 * 64
	latency := 24 * ms
	s := newSimulation(t, "", newRNG(1), usual, latency, n)
	for r := range n {
		if r%3 != 0 {
			s.deaths = append(s.deaths, death{rank: r, at: settled(usual)})
		}
	}
	s.checkDeaths(usual.bound(n, 2, latency)) // each gap has two
	s.deaths = append(s.deaths, death{rank: 3, at: s.now})
	s.checkDeaths(usual.bound(n, 2, latency))
	require.LessOrEqual(t, s.lag[3], usual.bound(n, 1, latency))
}

// While all ranks live each sends one heartbeat a period and nothing else. With pings one rank
// pings all others once a period, and they answer; the heartbeats of the ring are four times as
// rare.
func TestTraffic(t *testing.T) {
	for _, n := range []int{2, 3, 64} {
		for _, ping := range []bool{false, true} {
			config := usual
			config.Ping = ping
			s := newSimulation(t, fmt.Sprintf("%d ranks, ping %t", n, ping), newRNG(1), config, 10*ms, n)
			s.run(settled(config.ring()), nil)
			before := slices.Clone(s.ranks)
			const periods = 400
			s.run(s.now+periods*config.Period, nil)
			for r := range s.ranks {
				heartbeats, late, pings := periods, 0, 0
				switch {
				case ping && r == n-1:
					heartbeats, late, pings = periods/4, 1, periods*(n-1)
				case ping:
					heartbeats, late = periods/4+periods, 1
				}
				require.InDelta(t, heartbeats, s.ranks[r].heartbeats-before[r].heartbeats, float64(late), s.name)
				require.Equal(t, pings, s.ranks[r].pings-before[r].pings, s.name)
				require.Zero(t, s.ranks[r].notices+s.ranks[r].requests, s.name)
				require.Empty(t, s.ranks[r].told, s.name)
			}
		}
	}
}

func TestAloneIsSilent(t *testing.T) {
	m, err := New(usual, 0, 1, 5)
	require.NoError(t, err)
	require.Equal(t, Never, m.Deadline())
	m.Tick(time.Hour)
	require.Empty(t, m.Output())
	require.Error(t, m.Step(time.Hour, 0, Message{Kind: Heartbeat}))
}

// A rank that starts anew knows nothing but its neighbours: that is all it keeps.
func TestStateIsLogarithmic(t *testing.T) {
	const n = 400_000
	m, err := New(usual, 7, n, 0)
	require.NoError(t, err)
	require.LessOrEqual(t, cap(m.neighbours), 64)
	require.NoError(t, m.Step(0, 8, Message{Kind: Notice, first: 9, last: n - 1}))
	require.Len(t, m.dead, 1)
	require.LessOrEqual(t, cap(m.neighbours), 64)
	require.Equal(t, 6, m.emitter)
	require.Equal(t, 8, m.observer)
}

func TestBadArguments(t *testing.T) {
	for _, c := range []struct {
		config     Config
		rank, size int
		want       string
	}{
		{Config{Period: 0, Timeout: ms}, 0, 1, "period 0s, expected more than 0"},
		{Config{Period: -ms, Timeout: ms}, 0, 1, "period -1ms, expected more than 0"},
		{Config{Period: ms, Timeout: ms}, 0, 1, "timeout 1ms, expected more than the period, 1ms"},
		{Config{Period: ms, Timeout: 25 * time.Hour}, 0, 1, "timeout 25h0m0s, expected at most 24h0m0s"},
		{usual, 0, 0, "0 ranks, expected 1 to 536870912"},
		{usual, 0, maxSize + 1, "536870913 ranks, expected 1 to 536870912"},
		{usual, 3, 3, "rank 3, expected 0 to 2"},
		{usual, -1, 3, "rank -1, expected 0 to 2"},
	} {
		_, err := New(c.config, c.rank, c.size, 0)
		require.EqualError(t, err, "detector: "+c.want)
	}
	m, err := New(usual, 1, 3, 0)
	require.NoError(t, err)
	for _, c := range []struct {
		from int
		msg  Message
		want string
	}{
		{1, Message{Kind: Heartbeat}, "detector: heartbeat from rank 1, expected another one of 0 to 2"},
		{-1, Message{Kind: Notice}, "detector: notice from rank -1, expected another one of 0 to 2"},
		{3, Message{Kind: Notice}, "detector: notice from rank 3, expected another one of 0 to 2"},
		{2, Message{Kind: Ping}, "detector: ping from rank 2, expected none"},
		{0, Message{Kind: newObserver}, "detector: new observer is rank 0, expected 2, the next that lives"},
	} {
		require.EqualError(t, m.Step(0, c.from, c.msg), c.want)
		require.Empty(t, m.Output())
	}
}
