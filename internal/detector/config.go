package detector

import (
	"fmt"
	"math"
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
		c.Period, c.Timeout = 4*c.Period, 4*c.Timeout
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
