package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Model says what messages cost: [LogGP] or [Random].
type Model interface {
	fmt.Stringer

	// overhead is the CPU time of sending or receiving one message.
	overhead(rng *rand.Rand) time.Duration
	// gap is how long after a message of n bytes the sender's network interface
	// can inject the next.
	gap(n int) time.Duration
	// delay is the time from injection to arrival.
	delay(n int, rng *rand.Rand) time.Duration
	// random reports whether delays are random. If so, the order of messages between two ranks has
	// to be enforced, and events at the same time are ordered at random.
	random() bool
}

// LogGP is LogP (Culler et al., "LogP: towards a realistic model of parallel computation", PPoPP
// 1993) for messages of any length (Alexandrov et al., "LogGP: incorporating long messages into the
// LogP model", SPAA 1995). The first byte of a message of k bytes is injected when the sender's CPU
// has worked on it for Overhead, but not before Gap after the last byte of the previous message.
// The message arrives Latency + k GapPerByte later, and is received once the receiver's CPU has
// worked on it for Overhead. As in LogGOPSim (Hoefler et al. 2010), only the message waits for the
// gap, not the CPU.
type LogGP struct {
	Latency, Overhead, Gap time.Duration
	GapPerByte             float64 // ns
	CombinePerByte         float64 // ns of CPU time in a reduction, often called gamma: see Combining

	// Jitter is the average time that a system's noise adds to an overhead. The added time is
	// exponentially distributed.
	Jitter time.Duration
}

func (m LogGP) String() string {
	s := fmt.Sprintf("LogGP with L=%v, o=%v, g=%v, G=%gns", m.Latency, m.Overhead, m.Gap, m.GapPerByte)
	if m.CombinePerByte > 0 {
		s += fmt.Sprintf(", γ=%gns", m.CombinePerByte)
	}
	if m.Jitter > 0 {
		s += fmt.Sprintf(", jitter=%v", m.Jitter)
	}
	return s
}

// Combining is how long it takes to combine n bytes with n others in a reduction. A rank that
// combines in virtual time spends this time with [World.Compute].
func (m LogGP) Combining(n int) time.Duration {
	return time.Duration(float64(n) * m.CombinePerByte)
}

func (m LogGP) bytes(n int) time.Duration { return time.Duration(float64(n) * m.GapPerByte) }

func (m LogGP) overhead(rng *rand.Rand) time.Duration {
	if m.Jitter == 0 {
		return m.Overhead
	}
	return m.Overhead + time.Duration(rng.ExpFloat64()*float64(m.Jitter))
}

func (m LogGP) gap(n int) time.Duration                 { return m.bytes(n) + m.Gap }
func (m LogGP) delay(n int, _ *rand.Rand) time.Duration { return m.bytes(n) + m.Latency }
func (m LogGP) random() bool                            { return false }

// Random draws delays from Min to Max, evenly distributed, except for a fraction Tail of them:
// these are Max/u, for u uniform in (0, 1], but at most tailLimit times Max. Nothing costs CPU
// time. Only messages from one rank to another on one communicator stay in order (design rule F5).
type Random struct {
	Min, Max time.Duration
	Tail     float64 // from 0 to 1
}

const tailLimit = 1000

func (m Random) String() string {
	return fmt.Sprintf("random delays from %v to %v, %g %% in the tail", m.Min, m.Max, 100*m.Tail)
}

func (m Random) overhead(*rand.Rand) time.Duration { return 0 }
func (m Random) gap(int) time.Duration             { return 0 }
func (m Random) random() bool                      { return true }

func (m Random) delay(_ int, rng *rand.Rand) time.Duration {
	if m.Tail > 0 && rng.Float64() < m.Tail {
		return time.Duration(float64(m.Max) / max(1-rng.Float64(), 1./tailLimit))
	}
	return m.Min + time.Duration(rng.Int64N(int64(max(m.Max-m.Min, 0))+1))
}
