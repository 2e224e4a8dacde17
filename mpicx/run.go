package mpicx

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/transport"
)

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
// A process that mpicxrun has started is one rank of its job, with any tags. So is, with
// -tags mpi, one that mpirun or another launcher has started. Run calls fn once then,
// returns the error of this rank, and waits for all processes before: a peer may need this
// one to tell others of its error. If ctx ends before all have come, Run says who has not.
// Such a job can begin once in a process. So a program that calls Run more than once, at
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
	j, err := startJob(ctx, o, DefaultRanks)
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
		world.finish()
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
	dup, err := t.Sub(transport.ErrorChannelName(), nil)
	if err != nil {
		return nil, mpiError("Run", err)
	}
	world = newComm(p, t, nil, nil, "world", nil)
	p.carryOut, p.giveUp = world.carryOut, world.giveUp
	world.open(nil, dup, t.Epoch(), true, false)
	return world, nil
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
			*err = v
		default:
			*err = &future.Panicked{Value: v, Stack: debug.Stack()}
		}
		if p, ok := (*err).(*future.Panicked); ok {
			*err = &PanicError{c.Rank(), p.Value, p.Stack}
		}
		if c.proc.dead.Load() {
			*err = nil // nobody is told, and it takes part in nothing
			return
		}
		told := *err == nil || c.unwindAll(newFailure(describe(*err), 0), *err)
		c.end(!told)
	}()
	*err = fn(ctx, c)
}

// end says that the rank's program has ended, on the world and what is derived
// from it.
func (c *Comm) end(failed bool) {
	p := c.proc
	p.feed(p.ledger.Depart)
	if c.ulfm != nil {
		for _, d := range c.family() {
			d.ulfm.Leave()
		}
	}
	p.failed = failed
	p.feed(p.ledger.Go)
}

// finish says that the job is over. What uses a communicator of this rank from now on,
// or still waits for an operation, ends with an error: by then nobody answers.
func (c *Comm) finish() {
	p := c.proc
	p.over.Store(true)
	p.feed(p.ledger.End)
	if p.driver != nil { // peers in other processes may still receive what this rank sent
		return
	}
	for _, d := range c.family() {
		err := jobOver(useOp, d.name)
		d.t.Revoke(err)
		if d.ulfm != nil {
			d.ulfm.Abandon(err)
		}
	}
}
