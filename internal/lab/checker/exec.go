package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// rank runs the program at one rank.
type rank struct {
	*history
	id     int // in the world
	world  *inst
	late   []func() // checks for the end of the run
	insts  []*inst
	mortal bool // the backend sees deaths, and agrees on communicators that are made
	codes  int  // how many codes it has signalled
	byHand bool // mortal, and under ErrorsReturn: the program itself handles deaths

	released context.Context // ends when the run has failed
	outside  context.Context // ends with the rank's program
	end      context.CancelCauseFunc
	kill     context.CancelCauseFunc // ends the program's context
	spawned  sync.WaitGroup
}

// env is the environment of a step.
type env struct {
	ctx    context.Context
	comms  map[int]*inst
	scopes []*inst // of the enclosing scopes, the innermost last
	guard  bool    // the innermost scope is Guard
	begun  int64   // when the outermost scope began
	outer  *inst   // its communicator
	path   string  // of the iterations

	in     *running // the innermost scope
	beside bool     // in a goroutine of its own
	// group reports whether an error may come from the context of a group that has failed.
	group func(error) bool
	tag   int // of its messages; 0: the usual one
}

// ownError is an error of the program's own.
type ownError struct {
	text string
	code int
}

func (f *ownError) Error() string  { return f.text }
func (f *ownError) ErrorCode() int { return f.code }

// run is the rank's function for mpicx.Run. It returns the error that leaves the program if this is
// the rank's own error, and nil if the rank was told of it.
func (r *rank) run(ctx context.Context, p *program) error {
	ctx = r.beginGoroutines(ctx)
	defer r.endGoroutines()
	defer func() {
		r.leaves(r.id)
		if v := recover(); v != nil {
			for _, c := range r.insts {
				r.raise(c, r.id, fmt.Sprintf("panic: %v", v), true, false)
			}
			panic(v)
		}
	}()
	if p.returns {
		r.world.SetErrhandler(mpicx.ErrorsReturn)
	}
	err := r.begin(ctx, p)
	if err == nil || isVerdict(err) {
		return nil
	}
	if r.isStop(err, r.world) {
		return err
	}
	err = fmt.Errorf("%s%w", ends, err)
	for _, c := range r.insts { // the world, and communicators that may take its place
		r.raise(c, r.id, err.Error(), true, false)
	}
	return err
}

// begin runs the program; at a spare that was taken, the rest of the step that has taken it.
func (r *rank) begin(ctx context.Context, p *program) error {
	if r.world.members != nil {
		return r.all(p.body, &env{ctx: ctx, comms: map[int]*inst{world: r.world}})
	}
	step, err := r.meet(ctx, r.world, 0)
	if err != nil {
		if !isVerdict(err) && !(r.byHand && errors.As(err, new(*mpicx.ProcFailedError))) {
			r.failf("F2", "%q (%T) is no error of a TryAll, and that of rank %d, a spare, returns it", err, err, r.id)
		}
		return nil
	}
	s := p.repair(step)
	r.world.name, r.world.repair = replacedName(s), s.id
	r.insts = []*inst{r.world}
	r.enlist(r.scoped, r.world)
	r.outcome("H5: members of "+r.world.name, fmt.Sprint(r.world.members, r.world.taken))
	return r.all(s.afterRepair, &env{ctx: ctx, comms: map[int]*inst{s.id: r.world}})
}

func isVerdict(err error) bool {
	_, p := errors.AsType[*mpicx.PropagatedError](err)
	_, k := errors.AsType[*mpicx.CommCorruptedError](err)
	return p || k
}

// all runs steps until one returns an error.
func (r *rank) all(steps []*step, e *env) error {
	for _, s := range steps {
		if r.id < len(s.delay) && s.delay[r.id] > 0 {
			time.Sleep(time.Duration(s.delay[r.id]) * tick)
		}
		if e.comms[s.comm] == nil { // this rank is no member
			continue
		}
		if err := r.step(s, e); err != nil {
			return err
		}
	}
	return nil
}

func (r *rank) step(s *step, e *env) error {
	c := e.comms[s.comm]
	switch s.kind {
	case doOp:
		return r.operate(s, e, c)
	case doRaise:
		if s.has(r.id) {
			return r.raiseBy(s, e, c)
		}
	case doLeave:
		if s.has(r.id) {
			r.leave(s, e)
		}
	case doExpire:
		if s.has(r.id) {
			return r.expire(s, e, c)
		}
	case doCheck:
		if err := e.ctx.Err(); err != nil { // with its time, which makes it unique
			return fmt.Errorf("at %d: %w", r.now(), err)
		}
	case doErr:
		if s.has(r.id) {
			v := event{what: "Err", comm: c, begin: r.now(), err: c.Err()}
			r.note(&v, e, false)
			if isCorruption(v.err) { // a rank that knows of a corruption repairs
				return v.err
			}
		}
	case doWork:
		if s.has(r.id) {
			r.work(e)
		}
	case doScope:
		return r.scope(s, e, c)
	case doDerive:
		return r.derive(s, e, c)
	case doRepair:
		return r.repair(s, e, c)
	case doRevoke:
		if s.has(r.id) {
			r.revoke(e, c)
			return r.fault(s, e) // all that remains is a repair
		}
	case doClose:
		return r.close(s, e, c)
	case doPair:
		return r.pair(s, e, c)
	case doGroup:
		return r.group(s, e, c)
	case doListen:
		if s.has(r.id) {
			r.listen(s, e, c)
		}
	case doWatch:
		if s.has(r.id) {
			r.signalLater(s, e, c)
		}
	case doStop:
		if s.has(r.id) {
			r.stop(s, e, c)
		}
	case doStopping:
		return r.stopping(s, e, c)
	}
	return nil
}

// note classifies and records an event.
func (r *rank) note(v *event, e *env, deadline bool, allowed ...error) {
	if r.several && hook.Of(r.world.Comm).Dead() { // another goroutine of the rank was the first to find that
		return
	}
	v.end = r.now()
	v.what = fmt.Sprintf("%s on %s", v.what, v.comm.name)
	r.classify(v, append([]*inst{v.comm}, e.scopes...), deadline, allowed...)
	v.in, v.beside = e.in, e.beside
	r.mu.Lock()
	defer r.mu.Unlock()
	v.closed = slices.ContainsFunc(r.insts, func(c *inst) bool { return c.closed.Load() && c.name == v.of })
	if propagated(*v) { // it is the error of the scope at whose place it was raised, and of those inside
		from := v.in.try(v.of)
		if v.owner = r.ownerAt(from, v.of, v.err); v.scope && v.owner == v.in {
			v.owner = nil
		} else if v.owner != nil {
			for in := from; in != v.owner.around.try(v.of); in = in.around.try(v.of) {
				if in.returned == 0 && in.told == "" {
					in.told = v.key
				}
			}
		}
	}
	if isCorruption(v.err) && !e.beside {
		for c := v.comm; c != nil; c = c.parent {
			c.lost = c.lost || c.name == v.of
		}
	}
	for c := v.comm; c != nil && !e.beside; c = c.parent { // otherwise the error is of an enclosing scope
		v.comm.corrupt = v.comm.corrupt || isCorruption(v.err) && c.name == v.of && !strings.HasPrefix(v.what, "Try")
	}
	r.events[r.id] = append(r.events[r.id], *v)
}

// joins notes that the rank is a member of d.
func (r *rank) joins(d *inst) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.insts = append(r.insts, d)
}

// fault makes the error of a step that raises.
func (r *rank) fault(s *step, e *env) *ownError {
	return &ownError{text: fmt.Sprintf("e%d%s of rank %d", s.id, e.path, r.id), code: s.arg}
}

func (r *rank) raiseBy(s *step, e *env, c *inst) error {
	f := r.fault(s, e)
	var err error
	switch s.how {
	case byReturn:
		return f
	case byThrow:
		mpicx.Throw(f)
	case bySignal:
		r.raiseIn(e.in, c, r.id, f.text, false, true)
		v := event{what: "Signal", comm: c, begin: r.now()}
		err = c.Signal(e.ctx, f)
		v.err = err
		r.noteInGroup(&v, e)
		r.sent(e, c, f.text, err)
	case bySignalError:
		code := r.code()*10000 + s.id*100 + r.id
		text := fmt.Sprintf("error %d", code) // the text that peers get for a code
		r.raiseIn(e.in, c, r.id, text, false, true)
		v := event{what: "SignalError", comm: c, begin: r.now()}
		err = c.SignalError(e.ctx, code)
		v.err = err
		r.noteInGroup(&v, e)
		r.sent(e, c, text, err)
	}
	if err == nil {
		r.failf("P1", "Signal on %s at rank %d returns nil", c.name, r.id)
	}
	return err
}

// sent notes that the error with this text was not sent, if Signal has returned another: that of the Try
// around (T5).
func (r *rank) sent(e *env, c *inst, text string, err error) {
	if e.in.try(c.name) != nil && isVerdict(err) && !strings.Contains(verdictOf(err).Error(), text) {
		r.unsent(c, text)
	}
}

// panicked is what a step panics with.
type panicked struct {
	step, rank int
	path       string
	catcher    int // the doDerive that catches it; 0: a Guard does
}

// code counts the codes that the rank has signalled.
func (r *rank) code() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.codes++
	return r.codes
}

func (r *rank) leave(s *step, e *env) {
	switch s.how {
	case byPanic:
		panic(panicked{s.id, r.id, e.path, s.arg})
	case byGoexit:
		for _, c := range r.insts {
			r.raise(c, r.id, mpicx.ErrGoexit.Error(), true, false)
		}
		runtime.Goexit()
	case byDeath:
		r.died(r.id)
		mpicxtest.Die(r.world.Comm)
	}
}

// expire waits for a message that nobody sends. The deadline is the rank's own error.
func (r *rank) expire(s *step, e *env, c *inst) error {
	limit := time.Duration(s.arg) * tick
	ctx, cancel := context.WithTimeout(e.ctx, limit)
	defer cancel()
	start := time.Now()
	v := event{what: "Recv with a deadline", comm: c, begin: r.now()}
	r.expects.Store(report{comm: c.name, rank: c.Rank()}, true)
	f := mpicx.Recv(c.Comm, []int64{0}, (c.Rank()+1)%c.Size(), tagNever)
	v.err = f.Wait(ctx)
	waited := time.Since(start)
	r.note(&v, e, true)
	if v.err == nil {
		r.failf("P3", "rank %d receives on %s a message that nobody sent", r.id, c.name)
	}
	if !isVerdict(v.err) && errors.Is(v.err, context.DeadlineExceeded) { // otherwise another step's deadline may be its cause
		if waited != limit {
			r.failf("F2", "rank %d, on %s: a deadline after %v ends a Wait after %v", r.id, c.name, limit, waited)
		}
		return fmt.Errorf("e%d%s of rank %d: %w", s.id, e.path, r.id, v.err)
	}
	return v.err
}
