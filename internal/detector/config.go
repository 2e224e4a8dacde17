package detector

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Never is a time that does not come.
const Never = time.Duration(math.MaxInt64)

const (
	maxSize    = 1 << 29        // so that sums of three ranks fit into 32 bits
	maxTimeout = 24 * time.Hour // so that sums of times fit into 64
	maxScore   = 8              // as in memberlist
)

// Config is the same at all ranks. The latency L is the longest time from when a message is due to be
// sent until it is handled. Besides the network's delay it includes the lateness of a rank's Ticks and
// Steps.
type Config struct {
	// Period is η, the time between two heartbeats of a rank. While all live, detection costs one
	// message of [Size] bytes for each rank and period.
	Period time.Duration

	// Timeout is δ, how long after a heartbeat an observer waits for the next.
	//
	// Heartbeats are handled at most η + L apart, so with δ > η + L no living rank is accused. L is a
	// guess on most machines. With
	//
	//	δ = 4·max(η, L)
	//
	// or more, no living rank is accused even if a rank stands still for a time that is too short to
	// be noticed (see Machine): heartbeats may then come, once, η + δ/4 later, and 2η + L + δ/4 <= δ.
	Timeout time.Duration

	// Ping makes the highest living rank ping all others each period, and declare those dead that do
	// not answer for a timeout: Shahzad et al., "Building a fault tolerant application using the
	// GASPI communication layer", 2015, IV-A. Answers are handled at most η + 2L apart. The ring,
	// which detects the death of the highest rank, is then four times as slow.
	Ping bool

	// Quorum makes a rank fall silent if it does not know a majority of all ranks, including itself,
	// to be alive. If the network falls apart, at most one side survives.
	Quorum bool
}

// ring is the configuration of the ring.
func (c Config) ring() Config {
	if c.Ping {
		return Config{Period: 4 * c.Period, Timeout: 4 * c.Timeout}
	}
	return c
}

// Check returns an error if the configuration is invalid.
func (c Config) Check() error {
	switch {
	case c.Period <= 0:
		return fmt.Errorf("detector: period %v, expected more than 0", c.Period)
	case c.Timeout <= c.Period:
		return fmt.Errorf("detector: timeout %v, expected more than the period, %v", c.Timeout, c.Period)
	case c.Timeout > maxTimeout:
		return fmt.Errorf("detector: timeout %v, expected at most %v", c.Timeout, maxTimeout)
	}
	return nil
}

// slack returns how late a rank may be without doubting itself.
func (c Config) slack() time.Duration { return c.Timeout / 4 }

// Bound returns the longest time from a death to when the last of the n ranks
// that lives has been told, if the latency is L < δ - η:
//
//	δ + b·L                                                      for f = 1
//	(f² + f - 1)·δ + b·L + (f - 1)·(1 + b(b-1)/2)·L              in general
//
// where b = ⌈log2 n⌉ and f (deaths) counts this death, the deaths that are not settled when it occurs, and
// the deaths that occur before the last rank has been told. A death is settled when every rank has been
// told and has heard its emitter since, at most 2L after that. At the start no rank has heard another,
// which counts like one more unsettled death. For L >= δ - η the bound is [Never].
//
// One death in a settled ring: the last heartbeat is handled L after it, and the observer's timeout ends δ
// later. Consider a rank that has been told of the only death that some ranks do not know, and any rank at
// a distance of 2^k to 2^(k+1)-1 from it, ahead or behind. The first has a living neighbour with less than
// 2^k left to the second, in the same direction. No rank is further than n/2 in both directions, so b - 1
// successive messages reach each rank.
//
// In general, let the last of j unsettled deaths have occurred, with no other for a while.
//
//   - Within 2jδ every survivor knows the dead between the survivor before it and itself. It needs at most
//     2δ for each of them: that long it waits for a rank that it has asked. For one that it had heard it
//     waits less, L + δ.
//   - After another L it also knows the dead up to the survivor after it, because that one counts it as a
//     neighbour, and a rank has sent its neighbours all that it knows.
//   - Let every survivor s know all dead up to the first survivor at a distance of at least 2^h, ahead and
//     behind. (This holds now for h = 0.) Then its neighbours for 2^0 to 2^h are correct. Let q be the first
//     survivor at least 2^h behind s; if there is none, s knows all. q knows what s lacks for 2^(h+1). This
//     takes L to reach q's neighbour 2^h ahead, s'. Either s' is s, or it is between q and s, and then less
//     than 2^h behind s, because there is no survivor between q and s-2^h. From s' it takes at most h
//     successive messages along neighbours nearer than 2^h. The same holds in the other direction. So h
//     increases by one within (h+1)·L.
//   - With h = b - 1 every rank knows 2^(b-1) ranks in both directions, which is all.
//
// The sum is W(j) = 2jδ + (1 + b(b-1)/2)·L for j > 1, and W(1) = δ + b·L from above. The (j+1)-th death may
// occur just before W(j) ends and undo the work, f - 1 times. Hence the bound is W(1) + … + W(f).
//
// If ranks have doubted themselves, each of their waits may be longer by up to 8 timeouts and the time for
// which they stood still.
func (c Config) Bound(n, deaths int, latency time.Duration) time.Duration {
	if n <= 1 || deaths <= 0 {
		return 0
	}
	if latency >= c.Timeout-c.Period {
		return Never
	}
	b, f := int64(bits.Len(uint(n-1))), int64(min(deaths, n))
	return add(times(f*f+f-1, c.Timeout), times(b+(f-1)*(1+b*(b-1)/2), latency))
}

// times and add end at Never: with 10,000s of deaths a bound may be centuries.

func times(k int64, d time.Duration) time.Duration {
	if d > 0 && k > int64(Never/d) {
		return Never
	}
	return time.Duration(k) * d
}

func add(a, b time.Duration) time.Duration {
	if a > Never-b {
		return Never
	}
	return a + b
}
