package mpicx

import (
	"time"

	"github.com/mpicx/go-mpicx/internal/detector"
)

// A Detector says how the processes of a job find out that a machine has fallen silent: Ring or
// Ping.
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
		config, err := d.config()
		if err != nil {
			o.err = mpiErrorf("Run", ClassOther, "%v", err)
		}
		o.detector = config
	}
}

// Ring has the processes of a job send each other heartbeats, in a ring in which those of a
// machine are apart. When a machine falls silent, because it has lost its power or its network,
// all its processes count as dead, for all others, within about a timeout. One that is only
// stopped, or slow, does not, as long as another process of its machine says that it lives.
//
// If a network falls apart, its parts go on without each other. When it is whole again, the
// processes of the smaller parts get ErrFenced. With a quorum one part goes on at most.
type Ring struct {
	// Period is the time between two heartbeats of a process; 0: a twelfth of the timeout.
	Period time.Duration
	// Timeout is how long a process may be silent; 0: 5 s. It is to be longer than the network
	// may take to mend a broken route, and at least four times the period.
	Timeout time.Duration
	// Quorum ends processes that do not know more than half of the job's processes to live, with
	// ErrNoQuorum. Those of a job that spans machines count, whatever they have died of.
	Quorum bool
}

var defaultRing, _ = Ring{}.config()

func (r Ring) config() (detector.Config, error) {
	c := detector.Config{Period: r.Period, Timeout: r.Timeout, Quorum: r.Quorum}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Period == 0 {
		c.Period = c.Timeout / 12
	}
	return c, c.Check()
}

// Ping has one process ping all others once a period, as paper 002 does: Shahzad et al., "Building
// a fault tolerant application using the GASPI communication layer", 2015, IV-A. It is the last
// process of the job: a spare, where there are spares, so that the others only answer. Machines
// that fall silent count as dead as with Ring, but all at once, however many they are. When the
// process that pings dies, which slower heartbeats of a Ring tell, another one takes its place.
//
// It pings in jobs of one machine as well, whose processes see each other's ends at once
// nevertheless.
type Ping struct {
	// Period is the time between two pings of a process; 0: 1 s, or a twelfth of the timeout if
	// that is given.
	Period time.Duration
	// Timeout is how long a process may be silent; 0: four periods. It is to be longer than the
	// network may take to mend a broken route, and at least four times the period.
	Timeout time.Duration
	// Quorum is that of Ring.
	Quorum bool
}

func (p Ping) config() (detector.Config, error) {
	c := detector.Config{Period: p.Period, Timeout: p.Timeout, Ping: true, Quorum: p.Quorum}
	switch {
	case c.Period == 0 && c.Timeout == 0:
		c.Period, c.Timeout = time.Second, 4*time.Second
	case c.Period == 0:
		c.Period = c.Timeout / 12
	case c.Timeout == 0:
		c.Timeout = 4 * c.Period
	}
	return c, c.Check()
}
