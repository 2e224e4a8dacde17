package mpicx

import (
	"cmp"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/internal/detector"
	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/observe"
)

// DefaultRanks is the number of ranks that Run starts if neither WithRanks nor MPICX_RANKS says.
const DefaultRanks = 4

// Backend is the error backend that the build tags chose: "blackchannel", or "ulfm" with -tags
// ulfm.
const Backend = hook.Chosen

// An Option says how to start a job.
type Option func(*options)

type settable = hook.Settable //nolint:unused // the field's name, which is not exported

type options struct {
	settable                   //nolint:unused // package hook uses its methods
	set         *hook.Settings // hook.In of this
	chosen      int            // number of ranks from WithRanks; 0: not given
	environment int            // MPICX_RANKS
	log         *slog.Logger
	trace       bool
	timeline    string            // directory; "": none
	recorded    *observe.Timeline // of this process; nil: none
	run         int               // number of this run there
	detector    detector.Config   // zero: not given
	diagnoseOn  os.Signal         // MPICX_DIAGNOSE; nil: none
	err         error

	deadlockError bool
	stopSignals   []os.Signal // that ask for a stop
}

// WithRanks sets the number of ranks that Run starts as goroutines. Without this option the number
// is that of the environment variable MPICX_RANKS, or DefaultRanks.
//
// In a job of mpirun or mpicxrun each process is a rank. With WithRanks, only the first n processes
// are; at the others Run does not call its function.
func WithRanks(n int) Option {
	return func(o *options) {
		o.chosen = n
		if n < 1 {
			o.err = mpiErrorf("Run", ClassCount, "%d ranks, expected 1 or more", n)
		}
	}
}

// WithSpares adds k ranks that wait to take the places of dead ranks: see [Comm.Replace]. A spare
// is in no communicator before it is taken. If it is never taken, its Run returns without calling
// its function: nil or, if all working processes have died, an error that wraps a
// *[ProcFailedError].
//
// In a job of mpirun or mpicxrun, k of the processes are spares and the others are the world.
//
// Spares need -tags ulfm. Without it the job has none, and Run or Initialize says so on standard
// error, once in the job. The k processes have no rank: Run does not call its function there, and
// Instance.World is nil.
func WithSpares(k int) Option {
	return func(o *options) {
		hook.In(o).Spares = k
		if k < 0 {
			o.err = mpiErrorf("Run", ClassCount, "%d spares, expected 0 or more", k)
		}
	}
}

// WithRespawn has fresh ranks take the places of dead ones, instead of spares that wait: see
// [Comm.Replace]. Each Replace starts as many as have died, and no rank waits in the meantime. A
// job can't have both.
//
// A fresh goroutine rank calls Run's function; a job starts at most 1000 of them. In a job of
// mpicxrun a fresh process begins the program from its start. Run calls its function with the
// communicator that Replace has made; Instance.World returns it. mpicxrun -respawn says how many
// processes the launcher starts at most, and excludes a detector of type Ping. In a job of mpirun,
// where no process can be started later, Run returns an error: use WithSpares. With the black
// channel the option does nothing, and Run says so on standard error.
//
// In the communicator that Replace makes, a fresh rank has the rank of the dead one. Logs,
// timelines and mpicxrun -label number the ranks of the job: fresh ranks have the numbers after
// those that the job began with.
func WithRespawn() Option { return func(o *options) { hook.In(o).Respawn = true } }

// WithLogger logs the events of errors: signal, notice (the first of a round), resolved, corrupted,
// died and revoked; and, as Info, stop. Each has the attributes rank, the number in the job, comm
// and epoch. Without this option nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithRuntimeTrace writes the events of errors, repairs and checkpoints to the execution trace of
// package runtime/trace, if one is running. Each round of errors at each rank is a task, and its
// events are log messages. Each operation that is waited for is a region of its kind, such as
// "mpicx Allreduce".
func WithRuntimeTrace() Option { return func(o *options) { o.trace = true } }

// WithTimeline records what happens to each rank: its operations, errors, repairs and checkpoints.
// Each process of the job writes a file in dir, which is created if necessary. A SIGKILL cuts off
// at most the file's last line. Without this option, or if dir is empty, the environment variable
// MPICX_TIMELINE can name the directory.
//
//	go run github.com/mpicx/go-mpicx/mpicx/mpicxtrace dir
//
// prints the timeline and draws it. If a write fails, the process reports this once on standard
// error and writes nothing more; the job continues.
func WithTimeline(dir string) Option {
	return func(o *options) { o.timeline = cmp.Or(dir, o.timeline) }
}

// WithDeadlockError ends a deadlock with an error: when all ranks wait and none has moved for 10 s,
// which Run also reports on standard error, all of them get a *PropagatedError. Give the option at
// all ranks. At one rank errors.As finds a *[DeadlockError] in it; the others get its text. The job
// can continue as after any other such error.
//
// The library does not see what goroutines do that are in none of its Waits. So do not use the
// option in a program where all ranks may wait for more than 10 s for such a goroutine to send. It
// does nothing if the environment has MPICX_DIAGNOSE=off.
func WithDeadlockError() Option { return func(o *options) { o.deadlockError = true } }

func newOptions(opts []Option) *options {
	o := &options{timeline: os.Getenv("MPICX_TIMELINE")}
	o.set = hook.In(o)
	*o.set = hook.Settings{Backend: Backend, MostFresh: hook.Fresh, Diagnoses: os.Stderr}
	if s := os.Getenv("MPICX_RANKS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			o.err = mpiErrorf("Run", ClassCount, "MPICX_RANKS=%q, expected a number of ranks, 1 or more", s)
		}
		o.environment = n
	}
	if s := os.Getenv("MPICX_DIAGNOSE"); s == "off" {
		opts = append(slices.Clip(opts), func(o *options) { o.set.Stall = -1 })
	} else if s != "" {
		var known bool
		if o.diagnoseOn, known = diagnosis.Signals[s]; !known {
			all := append(slices.Sorted(maps.Keys(diagnosis.Signals)), "off")
			o.err = mpiErrorf("Run", ClassOther, "MPICX_DIAGNOSE=%q, expected one of %s", s, strings.Join(all, ", "))
		}
	}
	for i, opt := range opts {
		if opt == nil {
			o.err = mpiErrorf("Run", ClassOther, "option %d is nil, expected one such as WithRanks(4)", i)
			continue
		}
		opt(o)
	}
	if o.set.Respawn && o.set.Spares > 0 {
		o.err = mpiErrorf("Run", ClassOther, "WithRespawn and WithSpares(%d), expected one of them", o.set.Spares)
	}
	return o
}

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
