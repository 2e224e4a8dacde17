package mpicx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// DefaultRanks is how many ranks Run starts if nobody says.
const DefaultRanks = 4

// An Option says how to start a job.
type Option func(*options)

type options struct {
	chosen      int // number of ranks; 0: nobody has
	environment int // MPICX_RANKS
	backend     string
	log         *slog.Logger
	wrap        func(transport.Comm) transport.Comm
	err         error
}

// WithRanks sets the number of ranks that Run starts as goroutines. Without it
// that is the environment's MPICX_RANKS, or else DefaultRanks.
//
// In a job of mpirun's there are as many ranks as processes, or, with WithRanks, so
// many of the first: at the others Run does not call its function.
func WithRanks(n int) Option {
	return func(o *options) {
		o.chosen = n
		if n < 1 {
			o.err = mpiErrorf("Run", ClassCount, "%d ranks, expected 1 or more", n)
		}
	}
}

// WithLogger has the events of errors logged: signal, notice (the first of a
// round), resolved, corrupted, died and revoked. Each has the attributes rank,
// comm and epoch. Without it nothing is.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithTransport puts a layer of this module's own between communicators and
// their transport: to count messages, or to disturb them.
func WithTransport(wrap func(transport.Comm) transport.Comm) Option {
	return func(o *options) { o.wrap = wrap }
}

func newOptions(opts []Option) *options {
	o := &options{backend: Backend}
	if s := os.Getenv("MPICX_RANKS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			o.err = mpiErrorf("Run", ClassCount, "MPICX_RANKS=%q, expected a number of ranks, 1 or more", s)
		}
		o.environment = n
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

// Run starts a job and calls fn on each of its ranks with the communicator of
// all. It returns when all have returned: nil, or the errors of those that
// failed. A rank that leaves fn by an error, a panic or runtime.Goexit is not
// there for its peers any more: the world is corrupted for them, as by Guard, or
// what they use in its place. A panic comes back as a *PanicError, a Goexit as
// ErrGoexit. With -tags ulfm such a rank is dead for its peers, and so is one that
// has returned while others need it; under ErrorsReturn that is all they learn.
//
// The ranks are goroutines of this process. Run may be called often, and from
// several goroutines.
//
// With -tags mpi, a process that mpirun or another launcher has started is one rank
// of the job. Run calls fn once then, returns the error of this rank, and waits for
// all processes before: a peer may need this one to tell others of its error. MPI
// can be started once in a process. So a program that calls Run more than once, at
// all processes in the same order, has an Instance meanwhile; then it is Finalize that
// waits.
func Run(ctx context.Context, fn func(ctx context.Context, world *Comm) error, opts ...Option) error {
	switch {
	case ctx == nil:
		return mpiErrorf("Run", ClassOther, nilContext)
	case fn == nil:
		return mpiErrorf("Run", ClassOther, nilFunction)
	}
	o := newOptions(opts)
	if o.err != nil {
		return o.err
	}
	j, err := startJob(o, DefaultRanks)
	if err != nil {
		return err
	}
	errs := make(map[int]error)
	var worlds []*Comm
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, t := range j.sides {
		wg.Go(func() {
			var world *Comm
			var err error
			defer func() { // runtime.Goexit gets here too
				mu.Lock()
				defer mu.Unlock()
				if world != nil {
					worlds = append(worlds, world)
				}
				if err != nil {
					errs[t.Rank()] = err
				}
			}()
			if world, err = newWorld(t, o); err == nil {
				world.runRank(ctx, fn, &err)
			}
		})
	}
	wg.Wait()
	for _, world := range worlds {
		world.proc.finish()
	}
	err = j.end()
	if len(errs) == 0 {
		return err
	}
	err = &ranksError{errs}
	if is[*CommCorruptedError](err) {
		time.Sleep(j.courtesy)
	}
	return err
}

// newWorld makes the first communicator of a rank.
func newWorld(t transport.Comm, o *options) (world *Comm, err error) {
	p := newProc(t, o)
	if o.wrap != nil {
		t = o.wrap(t)
	}
	t.Sub(transport.ErrorChannelName(), nil, func(dup transport.Comm, e error) {
		if err = e; err == nil {
			world = newComm(p, t, nil, nil, "world", nil)
			world.open(nil, dup, t.Epoch(), true, false)
		}
	})
	return world, mpiError("Run", err)
}

// runRank is the life of a rank.
func (c *Comm) runRank(ctx context.Context, fn func(context.Context, *Comm) error, err *error) {
	*err = errUnwinding
	defer func() {
		switch v := recover().(type) {
		case nil:
			if *err == errUnwinding {
				*err = ErrGoexit
			}
		case future.Thrown:
			*err = v.Err
		case *future.Panicked:
			*err = &PanicError{c.Rank(), v.Value, v.Stack}
		default:
			*err = &PanicError{c.Rank(), v, debug.Stack()}
		}
		if c.proc.dead.Load() {
			*err = nil // nobody is told, and it takes part in nothing
			return
		}
		told := *err == nil || c.unwindAll(newFailure(describe(*err), 0), *err)
		c.proc.end(!told)
	}()
	*err = fn(ctx, c)
}

// unwindAll corrupts c because this rank's program is gone, or, where c is of no
// use already, what is derived from it. It says whether there was anything: else
// the peers only learn that the rank is dead.
func (c *Comm) unwindAll(f Failure, err error) (told bool) {
	if c.propagates() && c.raise(f, &ledger.Raised{Cause: err, Corrupt: true, Leaving: true}) != nil {
		return true
	}
	for _, d := range c.derived() {
		told = d.unwindAll(f, err) || told
	}
	return told
}

// describe is err for the peers: they do not need the stack of a panic.
func describe(err error) error {
	if p, ok := err.(*PanicError); ok {
		return fmt.Errorf("panic: %v", p.Value)
	}
	return err
}

// ranksError has the errors of several ranks.
type ranksError struct{ errs map[int]error } // by rank

// Error has a line for each different text, causes first: that ranks were told
// of a corruption comes last.
func (e *ranksError) Error() string {
	ranks := make(map[string][]int)
	var texts, told []string
	for _, r := range slices.Sorted(maps.Keys(e.errs)) {
		err := e.errs[r]
		text := err.Error()
		if ranks[text] == nil {
			if _, ok := errors.AsType[*CommCorruptedError](err); ok {
				told = append(told, text)
			} else {
				texts = append(texts, text)
			}
		}
		ranks[text] = append(ranks[text], r)
	}
	var lines []string
	for _, text := range append(texts, told...) {
		lines = append(lines, fmt.Sprintf("%s: %s", rankList(ranks[text]), text))
	}
	return strings.Join(lines, "\n")
}

func (e *ranksError) Unwrap() []error {
	var errs []error
	for _, r := range slices.Sorted(maps.Keys(e.errs)) {
		errs = append(errs, e.errs[r])
	}
	return errs
}

// rankList returns "rank 3" or "ranks 0-2, 5".
func rankList(ranks []int) string {
	var runs []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if i == j {
			runs = append(runs, strconv.Itoa(ranks[i]))
		} else {
			runs = append(runs, fmt.Sprintf("%d-%d", ranks[i], ranks[j]))
		}
		i = j + 1
	}
	if len(ranks) == 1 {
		return "rank " + runs[0]
	}
	return "ranks " + strings.Join(runs, ", ")
}
