package mpicx

import (
	"cmp"
	"io"
	"log/slog"
	"os"
	"strconv"

	"github.com/mpicx/go-mpicx/internal/detector"
	"github.com/mpicx/go-mpicx/internal/timeline"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// DefaultRanks is how many ranks Run starts if nobody says.
const DefaultRanks = 4

// An Option says how to start a job.
type Option func(*options)

type options struct {
	chosen      int // number of ranks; 0: nobody has
	environment int // MPICX_RANKS
	spares      int
	backend     string
	log         *slog.Logger
	trace       bool
	timeline    string // a directory; "": none
	recorder    *timeline.Writer
	run         int // of the recorder's
	wrap        func(transport.Comm) transport.Comm
	detector    detector.Config               // the zero one: nobody has chosen
	left        func(rank int, what []string) // is told what programs have left behind; nil: nobody asks
	diagnoseOn  os.Signal                     // MPICX_DIAGNOSE; nil: none
	diagnoses   io.Writer                     // where they are printed
	err         error
}

// WithRanks sets the number of ranks that Run starts as goroutines. Without it
// that is the environment's MPICX_RANKS, or else DefaultRanks.
//
// In a job of mpirun's or mpicxrun's there are as many ranks as processes, or, with WithRanks, so
// many of the first: at the others Run does not call its function.
func WithRanks(n int) Option {
	return func(o *options) {
		o.chosen = n
		if n < 1 {
			o.err = mpiErrorf("Run", ClassCount, "%d ranks, expected 1 or more", n)
		}
	}
}

// WithSpares adds k ranks that wait to take the places of the dead: see Comm.Replace. They are in
// no communicator before that, and their Run returns nil without a call of its function if they are
// not needed. Of the processes of mpirun's or mpicxrun's job, k are spares and the others the
// world. Under the black channel, which survives no death, there are none, and those processes have
// nothing to do.
func WithSpares(k int) Option {
	return func(o *options) {
		o.spares = k
		if k < 0 {
			o.err = mpiErrorf("Run", ClassCount, "%d spares, expected 0 or more", k)
		}
	}
}

// WithLogger has the events of errors logged: signal, notice (the first of a
// round), resolved, corrupted, died and revoked. Each has the attributes rank,
// comm and epoch. Without it nothing is.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithRuntimeTrace has the events of errors, of repairs and of checkpoints in the execution trace of
// package runtime/trace, while there is one: each round of errors at each rank is a task, its events are
// log messages, and each operation that is waited for is a region of its kind, such as "mpicx Allreduce".
func WithRuntimeTrace() Option { return func(o *options) { o.trace = true } }

// WithTimeline has what each rank is in, what errors do to it, repairs and checkpoints written to a file
// in dir, which is made if there is none: one of this process, and one of each other process of the job. A SIGKILL
// cuts off no more than its last line. Without this option, or if dir is empty, the environment may say
// it: MPICX_TIMELINE=dir.
//
//	go run github.com/mpicx/go-mpicx/mpicx/mpicxtrace dir
//
// tells what happened, and draws it. A write that fails is told once on standard error, and then
// the rest is missing; the job continues.
func WithTimeline(dir string) Option {
	return func(o *options) { o.timeline = cmp.Or(dir, o.timeline) }
}

func newOptions(opts []Option) *options {
	o := &options{backend: Backend, diagnoses: os.Stderr, timeline: os.Getenv("MPICX_TIMELINE")}
	if s := os.Getenv("MPICX_RANKS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			o.err = mpiErrorf("Run", ClassCount, "MPICX_RANKS=%q, expected a number of ranks, 1 or more", s)
		}
		o.environment = n
	}
	if s := os.Getenv("MPICX_DIAGNOSE"); s != "" {
		var err error
		if o.diagnoseOn, err = signalOf(s); err != nil {
			o.err = err
		}
	}
	for i, opt := range opts {
		if opt == nil {
			o.err = mpiErrorf("Run", ClassOther, "option %d is nil, expected one such as WithRanks(4)", i)
			continue
		}
		opt(o)
	}
	return o
}
