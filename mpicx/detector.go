package mpicx

import (
	"time"

	"github.com/mpicx/go-mpicx/internal/detector"
)

// A Detector says how the processes of a job find out that a machine has fallen silent: Ring.
//
// With -tags ulfm a job that spans machines has a detector by itself. Jobs of one machine, and
// goroutine ranks, need none: the end of a process is seen at once there.
type Detector interface {
	config() (detector.Config, error)
}

// WithDetector chooses the detector, for all processes alike. Without it that is Ring{}.
func WithDetector(d Detector) Option {
	return func(o *options) {
		if d == nil {
			o.err = mpiErrorf("Run", ClassOther, "nil detector, expected one such as Ring{}")
			return
		}
		ring, err := d.config()
		if err != nil {
			o.err = mpiErrorf("Run", ClassOther, "%v", err)
		}
		o.ring = ring
	}
}

// Ring has the processes of a job send each other heartbeats, in a ring in which those of a
// machine are apart. When a machine falls silent, because it has lost its power or its network,
// all its processes count as dead, for all others, within about a timeout. One that is only
// stopped, or slow, does not, as long as another process of its machine says that it lives.
//
// If a network falls apart, its parts go on without each other. When it is whole again, the
// processes of the smaller parts get ErrFenced.
type Ring struct {
	// Period is the time between two heartbeats of a process; 0: a twelfth of the timeout.
	Period time.Duration
	// Timeout is how long a process may be silent; 0: 5 s. It is to be longer than the network
	// may take to mend a broken route, and at least four times the period.
	Timeout time.Duration
}

var defaultRing, _ = Ring{}.config()

func (r Ring) config() (detector.Config, error) {
	c := detector.Config{Period: r.Period, Timeout: r.Timeout}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Period == 0 {
		c.Period = c.Timeout / 12
	}
	return c, c.Check()
}
