package mpicx

import (
	"time"

	"github.com/mpicx/go-mpicx/internal/detector"
)

// A Detector says how the processes of a job find out that a machine has fallen silent: Ring or
// Ping.
//
// With -tags ulfm a job that spans several machines always has a detector. Jobs of one machine,
// and goroutine ranks, need none: there the end of a process is seen at once.
type Detector interface {
	config() (detector.Config, error)
}

// WithDetector chooses the detector, the same at all processes. The default is Ring{}.
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

// Ring has the processes of a job send heartbeats to each other in a ring. When a machine falls
// silent, because it has lost its power or its network, all its processes count as dead at all
// other processes within about a timeout. A process that is only stopped or slow does not count
// as dead, as long as another process of its machine reports that it lives.
//
// If the network splits, each part continues without the others. When it is whole again, the
// processes of the smaller parts get ErrFenced. With Quorum at most one part continues.
type Ring struct {
	// Period is the time between two heartbeats of a process; 0: a twelfth of the timeout.
	Period time.Duration
	// Timeout is how long a process may be silent; 0: 5 s. It has to be longer than the network
	// takes to mend a broken route, and at least four times the period.
	Timeout time.Duration
	// Quorum ends a process with ErrNoQuorum if it knows at most half of the job's processes to be
	// alive. In a job that spans several machines every death counts, whatever its cause.
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

// Ping has one process ping all others once a period, as Shahzad et al. do, "Building a fault
// tolerant application using the GASPI communication layer", 2015, IV-A. That is the last
// process of the job. If the job has spares it is one of them, so that the others only answer.
// Machines that fall silent count as dead as with Ring, but all at the same time, however many
// they are. When the pinging process dies, the others notice by slower heartbeats in a ring,
// and another one takes its place.
//
// It also pings in jobs of one machine, although the ends of processes are seen at once there.
type Ping struct {
	// Period is the time between two pings of a process; 0: 1 s, or a twelfth of the timeout if
	// that is given.
	Period time.Duration
	// Timeout is how long a process may be silent; 0: four periods. It has to be longer than the
	// network takes to mend a broken route, and at least four times the period.
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
