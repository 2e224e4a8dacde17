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

// Config is the same at all ranks. L, the latency, is the longest time from when
// a message is due to be sent to when it is handled: besides the network's delay
// it has in it how late a rank may be with its Ticks and Steps.
type Config struct {
	// Period is η, the time between two heartbeats of a rank: one message of
	// [Size] bytes a rank and period is what detection costs while all live.
	Period time.Duration

	// Timeout is δ, how long after a heartbeat an observer waits for the next.
	//
	// Heartbeats are handled at most η + L apart, so that with δ > η + L nobody is
	// accused who lives. L is a guess on most machines; with
	//
	//	δ = 4·max(η, L)
	//
	// or more, nobody is accused either if a rank stands still for a time that is
	// too short to be noticed (see Machine): then heartbeats may come, for once,
	// η + δ/4 later, and 2η + L + δ/4 <= δ.
	Timeout time.Duration

	// Ping has the highest rank that lives ping all others each period, and hold those for dead
	// that do not answer for a timeout: Shahzad et al., "Building a fault tolerant application
	// using the GASPI communication layer", 2015, IV-A. Answers are handled at most η + 2L apart.
	// The ring, which finds out that this rank has died, is four times as slow then.
	Ping bool

	// Quorum has a rank that knows no majority of all ranks to live, itself among them, fall
	// silent: of a network that falls apart one side goes on at most.
	Quorum bool
}

// ring is the configuration of the ring.
func (c Config) ring() Config {
	if c.Ping {
		return Config{Period: 4 * c.Period, Timeout: 4 * c.Timeout}
	}
	return c
}

// Check says why the configuration makes no sense, if it does not.
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

// slack is how late a rank may be without doubting itself.
func (c Config) slack() time.Duration { return c.Timeout / 4 }

// Bound returns the longest time from a death to when the last of the n ranks
// that lives has been told, if the latency is L < δ - η:
//
//	δ + b·L                                                      for f = 1
//	(f² + f - 1)·δ + b·L + (f - 1)·(1 + b(b-1)/2)·L              in general
//
// where b = ⌈log2 n⌉ and f, deaths, counts this one, those not settled when it
// strikes, and those that strike before the last rank has been told. A death is
// settled once everybody has been told and every rank has heard its emitter since:
// at most 2L after. At the start nobody has heard anybody, which counts like one
// more death that is not settled. For L >= δ - η the bound is [Never].
//
// One death in a settled ring: the last heartbeat is handled L after it, and its
// observer's timeout ends δ later. Each rank that has been told of the only death
// that not all know of has neighbours that live, among them, for any rank at a
// distance of 2^k to 2^(k+1)-1 ahead or behind, one that leaves less than 2^k in
// the same direction. No rank is further than n/2 in both directions, so b - 1
// messages in a row reach each.
//
// In general, say that the last of j unsettled deaths has struck and no other
// follows for a while.
//
//   - Within 2jδ every survivor knows the dead between the survivor before it and
//     itself. It needs at most 2δ for each: that is how long it waits for one that
//     it has asked, and it waits less, L + δ, for one that it had heard.
//   - L later it knows those up to the survivor after it too, since that one counts
//     it as a neighbour, and a neighbour has been sent all that a rank knows.
//   - Say that every survivor s knows all dead up to the first survivor at a
//     distance of at least 2^h, ahead and behind (h = 0 so far). Then its neighbours
//     for 2^0 to 2^h are the right ones. Let q be the first survivor at least 2^h
//     behind s; without one, s knows all. What q knows is what s lacks for 2^(h+1).
//     It takes L to q's neighbour 2^h ahead, s' say; s' is s, or between q and s,
//     and then less than 2^h behind s, because no survivor stands between q and
//     s-2^h. From s' it takes at most h messages in a row along the neighbours nearer
//     than 2^h. The same holds in the other direction. So h grows by one within
//     (h+1)·L.
//   - With h = b - 1 everybody knows 2^(b-1) ranks in both directions: all.
//
// The sum is W(j) = 2jδ + (1 + b(b-1)/2)·L for j > 1; W(1) = δ + b·L stands above.
// The j+1st death may strike just before W(j) ends and undo the work, f - 1 times:
// the bound is W(1) + … + W(f).
//
// Where ranks have doubted themselves, each wait of theirs may be longer by up to
// 8 timeouts and the time for which they stood still.
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
