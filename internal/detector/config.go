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

// Config must be the same at all ranks. Its comments call L the latency: the longest time from
// when a message is due to be sent until it is handled. L includes the delay of the network, and
// how late the ranks call Tick and Step.
type Config struct {
	// Period is η, the time between two heartbeats of a rank. While all ranks live, detection
	// costs one message of [Size] bytes for each rank and period.
	Period time.Duration

	// Timeout is δ, how long after a heartbeat an observer waits for the next.
	//
	// Heartbeats are handled at most η + L apart. So with δ > η + L no living rank is accused. On
	// most machines L is a guess. With
	//
	//	δ = 4·max(η, L)
	//
	// or more, no living rank is accused even if a rank stands still for up to δ/4, which it does
	// not notice (see Machine): one heartbeat may then come η + δ/4 later, and 2η + L + δ/4 <= δ.
	Timeout time.Duration

	// Ping makes the highest living rank ping all others each period, and declare each rank dead
	// that has not answered for a timeout: Shahzad et al., "Building a fault tolerant application
	// using the GASPI communication layer", 2015, IV-A. Answers are handled at most η + 2L apart.
	// The ring, which detects the death of the highest rank, is then four times as slow.
	Ping bool

	// Quorum makes a rank fall silent when it knows half of all ranks or more to be dead. If the
	// network falls apart, then at most one side survives: the one with a majority of the ranks.
	Quorum bool
}

// ring returns the configuration of the ring: with Ping, the ring is four times as slow.
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

// slack returns how long after its Deadline a Machine may be fed without noticing it: see doubt.
func (c Config) slack() time.Duration { return c.Timeout / 4 }
