package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// rank runs the program at one rank.
type rank struct {
	*history
	id     int // in the world
	world  *inst
	late   []func() // checks, at the end of the run
	insts  []*inst
	mortal bool // the backend sees processes die, and agrees on what it makes
	codes  int  // how many it has signalled
}

// env is what a step finds around it.
type env struct {
	ctx    context.Context
	comms  map[int]*inst
	scopes []*inst // of the scopes around, the innermost last
	guard  bool    // the innermost is Guard
	begun  int64   // when the outermost did
	outer  *inst   // its communicator
	path   string  // of the iterations
}

// ownError is an error of the program's own.
type ownError struct {
	text string
	code int
}

// left is what the program makes of the error that comes out of Guard.
type left struct {
	comm string
	err  error
}

func (e *left) Error() string { return fmt.Sprintf("out of Guard of %s: %v", e.comm, e.err) }
func (e *left) Unwrap() error { return e.err }

// bare is err as the face returned it.
func bare(err error) error {
	for {
		e, ok := err.(*left)
		if !ok {
			return err
		}
		err = e.err
	}
}

func (f *ownError) Error() string  { return f.text }
func (f *ownError) ErrorCode() int { return f.code }

// run is what the rank gives mpicx.Run. It ends with the error that leaves the program
// if that is the rank's own, and with nil if it was told of it.
func (r *rank) run(ctx context.Context, p *program) error {
	defer func() {
		r.leaves()
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
	err := r.all(p.body, &env{ctx: ctx, comms: map[int]*inst{world: r.world}})
	if err == nil || isVerdict(err) {
		return nil
	}
	err = fmt.Errorf("%s%w", ends, err)
	for _, c := range r.insts { // the world, or what stands in for it
		r.raise(c, r.id, err.Error(), true, false)
	}
	return err
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
			time.Sleep(time.Duration(s.delay[r.id]) * time.Microsecond)
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
		if err := e.ctx.Err(); err != nil {
			return err
		}
	case doErr:
		if s.has(r.id) {
			v := event{what: "Err", comm: c, begin: r.now(), err: c.Err()}
			r.note(&v, e, false)
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
		}
	}
	return nil
}

// note classifies and keeps an event.
func (r *rank) note(v *event, e *env, deadline bool, allowed ...error) {
	v.end = r.now()
	v.what = fmt.Sprintf("%s on %s", v.what, v.comm.name)
	r.classify(v, append([]*inst{v.comm}, e.scopes...), deadline, allowed...)
	if isCorruption(v.err) {
		for c := v.comm; c != nil; c = c.parent {
			c.lost = c.lost || c.name == v.of || v.of == ""
		}
	}
	v.comm.corrupt = v.comm.corrupt || isCorruption(v.err) && !strings.HasPrefix(v.what, "Try")
	r.mu.Lock()
	r.events[r.id] = append(r.events[r.id], *v)
	r.mu.Unlock()
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
		r.raise(c, r.id, f.text, false, true)
		v := event{what: "Signal", comm: c, begin: r.now()}
		err = c.Signal(e.ctx, f)
		v.err = err
		r.note(&v, e, false)
	case bySignalError:
		r.codes++
		code := r.codes*10000 + s.id*100 + r.id
		text := fmt.Sprintf("error %d", code) // what peers are told of a code
		r.raise(c, r.id, text, false, true)
		v := event{what: "SignalError", comm: c, begin: r.now()}
		err = c.SignalError(e.ctx, code)
		v.err = err
		r.note(&v, e, false)
	}
	if err == nil {
		r.failf("P1", "Signal on %s at rank %d returns nil", c.name, r.id)
	}
	return err
}

// panicked is what a step panics with.
type panicked struct {
	step, rank int
	path       string
}

func (r *rank) leave(s *step, e *env) {
	switch s.how {
	case byPanic:
		panic(panicked{s.id, r.id, e.path})
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
	limit := time.Duration(s.arg) * time.Microsecond
	ctx, cancel := context.WithTimeout(e.ctx, limit)
	defer cancel()
	start := time.Now()
	v := event{what: "Recv with a deadline", comm: c, begin: r.now()}
	f := mpicx.Recv(c.Comm, []int64{0}, (c.Rank()+1)%c.Size(), tagNever)
	v.err = f.Wait(ctx)
	waited := time.Since(start)
	r.note(&v, e, true)
	if v.err == nil {
		r.failf("P3", "rank %d receives on %s a message that nobody sent", r.id, c.name)
	}
	if errors.Is(v.err, context.DeadlineExceeded) {
		if waited != limit {
			r.failf("F2", "rank %d, on %s: a deadline after %v ends a Wait after %v", r.id, c.name, limit, waited)
		}
		return fmt.Errorf("e%d%s of rank %d: %w", s.id, e.path, r.id, v.err)
	}
	return v.err
}

// work computes until the context ends, or for longer than any message takes. Then no
// peer may have raised an error that this rank has not been told of (P8).
func (r *rank) work(e *env) {
	const long = time.Second
	begin := time.Now()
	select {
	case <-e.ctx.Done():
		r.excused(e)
		return
	case <-time.After(long):
	}
	if len(e.scopes) == 0 || e.guard {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, all := range r.raised {
		for _, a := range all {
			if !a.certain || a.world == r.id || r.dead[a.world] || !e.scopes[len(e.scopes)-1].derivedFrom(a.comm) || a.when.After(begin.Add(long/2)) {
				continue
			}
			if !r.knows(what, math.MaxInt64) && !r.lost(what.comm) {
				r.failures = append(r.failures, fmt.Sprintf("P8: the context of a rank that computes goes on: of rank %d, %v after rank %d has raised %q on %s",
					r.id, time.Since(a.when), a.world, what.message, a.comm))
				return
			}
		}
	}
}

// excused checks that there is an error because of which the context of a Try has
// ended: one that this rank was not told of before, or a death.
func (r *rank) excused(e *env) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.dead) > 0 || r.gone || len(e.scopes) == 0 || e.outer == nil {
		return
	}
	for what := range r.raised {
		for _, c := range e.scopes {
			if c.derivedFrom(what.comm) && !r.lost(what.comm) && !r.knows(what, e.begun) {
				return
			}
		}
	}
	r.failures = append(r.failures, fmt.Sprintf("P8: a context ends for nothing: of rank %d, in a scope of %s that began at %d",
		r.id, e.scopes[len(e.scopes)-1].name, e.begun))
}

// knows says whether the rank had been told of a report before. The caller holds mu, for
// lost as well.
func (r *rank) knows(what report, before int64) bool {
	return slices.ContainsFunc(r.events[r.id], func(v event) bool {
		var failures []mpicx.Failure
		switch err := bare(v.err).(type) {
		case *mpicx.PropagatedError:
			failures = err.Failures
		case *mpicx.CommCorruptedError:
			failures = err.Failures
		}
		return v.end < before && (v.of == what.comm || v.of == "") &&
			slices.ContainsFunc(failures, func(f mpicx.Failure) bool { return f.Rank == what.rank && f.Message == what.message })
	})
}

// lost says whether the rank knows that a communicator is corrupted: errors of it that
// are not resolved by then are not told.
func (r *rank) lost(comm string) bool {
	return slices.ContainsFunc(r.insts, func(c *inst) bool { return c.name == comm && (c.lost || c.unwound) })
}

// scope runs Try, TryAll or Guard.
func (r *rank) scope(s *step, e *env, c *inst) error {
	for i := range max(s.repeat, 1) {
		inner := *e
		inner.scopes = append(e.scopes[:len(e.scopes):len(e.scopes)], c)
		inner.guard = s.how == guard
		if inner.outer == nil {
			inner.outer, inner.begun = c, r.now()
		}
		if s.repeat > 1 {
			inner.path += fmt.Sprintf("#%d", i)
		}
		err := r.once(s, &inner, e.ctx, c)
		if s.kind == doScope && s.how == tryAll {
			r.unit(s, &inner, c, err)
		}
		if err != nil {
			if s.catch {
				if r.ofComm(err, c) {
					continue
				}
			}
			return err
		}
	}
	return nil
}

// once runs the scope once. The panic of a step comes out of Guard as it was; the
// program takes it for an error.
func (r *rank) once(s *step, e *env, ctx context.Context, c *inst) (err error) {
	var local error // of this rank, told to nobody so far
	name := [...]string{"Try", "TryAll", "Guard"}[s.how]
	body := func(ctx context.Context) (err error) {
		e.ctx = ctx
		returned := false
		defer func() {
			v := recover()
			thrown, ok := asThrown(v)
			if ok {
				err = thrown
			}
			switch {
			case s.how == guard && v != nil && !ok:
				r.raise(c, r.id, fmt.Sprintf("panic: %v", v), true, true)
			case err == nil || !returned && v == nil:
			case s.how == guard:
				r.raise(c, r.id, err.Error(), true, true)
			default:
				// A context that an error has ended is what that error is, if it is on its way.
				own := !isVerdict(err) && !errors.Is(err, context.Canceled)
				if own {
					local = err
				}
				r.raise(c, r.id, err.Error(), false, own)
			}
			if v != nil {
				panic(v)
			}
		}()
		err = r.all(s.body, e)
		returned = true
		return err
	}
	begin := r.now()
	defer func() {
		if v := recover(); v != nil {
			p, ok := v.(panicked)
			if !ok || s.how != guard {
				panic(v)
			}
			c.unwound = true
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	switch s.how {
	case try:
		err = c.Try(ctx, body)
	case tryAll:
		err = c.TryAll(ctx, body)
	case guard:
		if err = c.Guard(ctx, body); err != nil {
			c.unwound = true
			if !r.above(err, c) { // for the scopes around it is another error
				err = &left{c.name, err}
			}
		}
	}
	if s.how != guard {
		v := event{what: name, comm: c, begin: begin, err: err, quiet: true}
		r.note(&v, e, false)
		if local != nil {
			r.origin(name, c, local, err)
		}
	}
	return err
}

// origin checks what a Try returns whose function failed with an error of this rank.
func (r *rank) origin(name string, c *inst, local, err error) {
	if err == nil {
		r.failf("P1", "%s on %s at rank %d returns nil after %q", name, c.name, r.id, local)
	}
	v, ok := err.(*mpicx.PropagatedError)
	if !ok {
		return
	}
	for _, f := range v.Failures {
		if f.Rank == c.Rank() && f.Message == local.Error() && !errors.Is(err, local) {
			r.failf("P2", "errors.Is does not find %q in what %s on %s returns at its origin: %v", local, name, c.name, err)
		}
	}
}

// above says whether err is an error of one that c is derived from.
func (r *rank) above(err error, c *inst) bool {
	owner, known := r.ownerOf(err, c)
	return known && owner != c
}

// ownerOf returns the communicator of a verdict that a rank of c was told of.
func (r *rank) ownerOf(err error, c *inst) (owner *inst, known bool) {
	switch v := bare(err).(type) {
	case *mpicx.PropagatedError:
		return r.owner(v.Failures, false, c)
	case *mpicx.CommCorruptedError:
		if len(v.Failures) == 0 || strings.Contains(v.Error(), ends) {
			return nil, true
		}
		return r.owner(v.Failures, true, c)
	}
	return nil, false
}

// unit notes how a TryAll ended at this rank.
func (r *rank) unit(s *step, e *env, c *inst, err error) {
	outcome := "nil"
	if r.ofComm(err, c) {
		outcome = err.Error()
	} else if err != nil {
		return // of what it is derived from, or final
	}
	r.outcome(fmt.Sprintf("TryAll: number %d%s on %s", s.id, e.path, c.name), outcome)
}

// ofComm says whether err is a PropagatedError of c itself.
func (r *rank) ofComm(err error, c *inst) bool {
	_, ok := err.(*mpicx.PropagatedError)
	owner, _ := r.ownerOf(err, c)
	return ok && owner == c
}

// derive makes a communicator and runs the body with it.
func (r *rank) derive(s *step, e *env, parent *inst) error {
	v := event{what: "Dup", comm: parent, begin: r.now(), quiet: true}
	f := parent.Dup
	if s.how == split {
		v.what = "Split"
		f = func() *future.Future[*mpicx.Comm] { return parent.Split(r.id%s.arg, 0) }
	}
	making := f()
	made, err := making.Get(e.ctx)
	v.err = err
	r.note(&v, e, false)
	what := fmt.Sprintf("H5: making number %d%s of %s", s.id, e.path, parent.name)
	if err != nil {
		r.unmade(what, making, err, e, parent)
		return err
	}
	if r.mortal {
		r.outcome(what, "done")
	}
	d := &inst{Comm: made, name: fmt.Sprintf("%s/c%d%s", parent.name, s.id, e.path), parent: parent}
	for _, m := range parent.members {
		if s.how == dup || m%s.arg == r.id%s.arg {
			d.members = append(d.members, m)
		}
	}
	if s.how == split {
		d.name += fmt.Sprintf("(%d)", r.id%s.arg)
	}
	if made.Size() != len(d.members) || made.Rank() != d.rankOf(r.id) {
		r.failf("Split", "%s has %d ranks, this one is %d, expected members %v", d.name, made.Size(), made.Rank(), d.members)
	}
	r.insts = append(r.insts, d)
	inner := *e
	inner.comms = map[int]*inst{s.id: d}
	for k, c := range e.comms {
		inner.comms[k] = c
	}
	err = r.all(s.body, &inner)
	if err == nil && s.close {
		v := event{what: "Close", comm: d, begin: r.now(), quiet: true}
		err = d.Close(e.ctx)
		v.err = err
		r.note(&v, e, false)
	}
	r.useless(d, e)
	if s.absorb && err != nil && r.ofOnly(err, d) {
		return nil
	}
	return err
}

// unmade notes, of a communicator whose making ended with a verdict, whether that came
// in the place of the result (P7) or there is none: that has to be the same at all ranks.
func (r *rank) unmade(what string, making *future.Future[*mpicx.Comm], err error, e *env, parent *inst) {
	if !r.mortal || !isVerdict(err) || runtime.GOMAXPROCS(0) > 1 {
		return // with several cores a verdict may come before Test, and be reported by it
	}
	v := event{what: "Err", comm: parent, begin: r.now(), err: parent.Err()}
	r.note(&v, e, false)
	if v.err != nil {
		return
	}
	switch done, result := making.Test(); {
	case done && result == nil:
		r.outcome(what, "done")
	case done && result == err:
		r.outcome(what, "not done")
	}
}

// useless checks that an operation which needs nobody else does not work on a
// communicator that is corrupted (C4).
func (r *rank) useless(d *inst, e *env) {
	if !d.corrupt || !d.whole() {
		return
	}
	v := event{what: "Recv from itself", comm: d, begin: r.now(), quiet: true}
	send := mpicx.Send(d.Comm, []int64{1}, d.Rank(), tagNever)
	v.err = mpicx.Recv(d.Comm, []int64{0}, d.Rank(), tagNever).Wait(e.ctx)
	_, _ = send.Test()
	r.note(&v, e, false)
	if !isCorruption(v.err) {
		r.failf("C4", "an operation on %s at rank %d returns %v, after one has returned a CommCorruptedError", d.name, r.id, v.err)
	}
}

// ofOnly says whether err concerns the ranks of d alone: it is d's, or this rank has
// left d's Guard by it.
func (r *rank) ofOnly(err error, d *inst) bool {
	if isVerdict(err) {
		owner, _ := r.ownerOf(err, d)
		if owner != nil {
			return owner == d
		}
	}
	return d.unwound && !r.above(err, d)
}
