package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// running is one call of Try, TryAll or Guard at one rank. The history's lock protects it.
type running struct {
	*step
	comm   *inst
	around *running
	// told is the verdict of comm that was first told inside: it stays the scope's until its
	// function has returned, unless a scope inside catches it.
	told string
	// watchers are the goroutines inside a Signal. The function does not return nil before they are.
	watchers int
	idle     chan struct{} // closed when there are none
	name     string        // its place in the program
	after    []func()      // to call when it has returned

	begun    int64
	returned int64 // when its function has returned; 0: it has not

	ended   int64  // when it has returned; 0: it has not
	of, key string // the verdict that it has returned
	failed  bool   // it has returned an error
}

// plain reports whether no scope on any communicator is inside.
func (s *step) plain() bool {
	return !anywhere(s.body, func(s *step) bool { return s.kind == doScope || slices.Contains(s.crew, crewTry) })
}

// keeps reports whether no scope inside catches errors.
func (s *step) keeps() bool {
	return !anywhere(s.body, func(s *step) bool { return s.catch || s.absorb })
}

func anywhere(steps []*step, holds func(*step) bool) bool {
	return slices.ContainsFunc(steps, func(s *step) bool { return holds(s) || anywhere(s.body, holds) || anywhere(s.afterRepair, holds) })
}

// on returns the innermost scope on the communicator of that name.
func (r *running) on(comm string) *running {
	for r != nil && r.comm.name != comm {
		r = r.around
	}
	return r
}

// place names the Trys around on the communicator of that name, the outermost first.
func (r *running) place(comm string) []string {
	in := r.try(comm)
	if in == nil {
		return nil
	}
	return append(in.around.place(comm), in.name)
}

// owner returns the Try around on the communicator of that name to which a verdict belongs that was raised
// at a place: the innermost Try that is around the place too. It is nil if there is none, or if the
// verdict was raised in a Try inside that: if the rank does not come to it, or has left it, the verdict is
// part of the next one.
func (r *running) owner(comm string, place []string) *running {
	in := r.try(comm)
	mine := in.place(comm)
	common := 0
	for common < min(len(mine), len(place)) && mine[common] == place[common] {
		common++
	}
	if common < len(place) {
		return nil
	}
	for range len(mine) - common {
		in = in.around.try(comm)
	}
	return in
}

// try returns the innermost Try or TryAll on the communicator of that name.
func (r *running) try(comm string) *running {
	in := r.on(comm)
	for in != nil && in.how == guard {
		in = in.around.on(comm)
	}
	return in
}

// settled reports whether an error that is raised on c inside r comes too late for any verdict: a
// goroutine of the rank was told of an error of c, or of one that c is derived from, which is the
// scope's until its function has returned (T2). The caller holds mu.
func (r *running) settled(c *inst) bool {
	for ; r != nil; r = r.around {
		if r.told != "" && r.keeps() && c.derivedFrom(r.comm.name) {
			return true
		}
	}
	return false
}

// spawn begins a goroutine, which the rank waits for before it ends.
func (r *rank) spawn(f func()) {
	r.spawned.Add(1)
	go func() {
		defer r.spawned.Done()
		f()
	}()
}

// beginGoroutines makes the context from outside of all scopes.
func (r *rank) beginGoroutines(ctx context.Context) context.Context {
	ctx, r.kill = context.WithCancelCause(ctx)
	r.outside, r.end = context.WithCancelCause(context.Background())
	context.AfterFunc(r.released, func() { r.end(context.Cause(r.released)) })
	return ctx
}

// errOver is the cause of the contexts that the program itself ends.
var errOver = errors.New("the program has ended it")

// endGoroutines ends the rank's goroutines.
func (r *rank) endGoroutines() {
	if r.several {
		time.Sleep(tick) // goroutines that an error has woken return it
	}
	r.end(errOver)
	if hook.Of(r.world.Comm).Dead() { // the contexts of its scopes have not ended
		r.kill(errOver)
	}
	r.spawned.Wait()
}

// beside returns the environment of a goroutine.
func (e *env) besides(ctx context.Context, tag int) *env {
	inner := *e
	inner.ctx, inner.beside, inner.tag = ctx, true, tag
	return &inner
}

// chained reports whether the errors of all enclosing scopes are errors of c. Otherwise only the context
// ends operations on c for some of them.
func (e *env) chained(c *inst) bool {
	return !slices.ContainsFunc(e.scopes, func(s *inst) bool { return !c.derivedFrom(s.name) })
}

// context returns the context with which a step waits.
func (r *rank) context(s *step, e *env, c *inst) context.Context {
	if s.outside && e.chained(c) {
		return r.outside
	}
	return e.ctx
}

// listen begins a goroutine that receives what nobody sends. If its context is from outside, the program ends
// it before the outermost Try returns nil, or afterwards: the next error would otherwise be its (T4).
func (r *rank) listen(s *step, e *env, c *inst) {
	ctx, outside := r.context(s, e, c), s.outside && e.chained(c)
	recv := mpicx.Recv(c.Comm, []int64{0}, c.Rank(), tagSelf)
	v := event{what: "listener's Recv", comm: c, begin: r.now(), listens: true, outside: outside}
	over := make(chan struct{})
	if outside {
		outermost := e.in
		for in := e.in; in != nil; in = in.around {
			if in.comm == c && in.how != guard {
				outermost = in
			}
		}
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		outermost.after = append(outermost.after, func() {
			end(errOver)
			<-over
		})
	}
	e = e.besides(e.ctx, 0)
	r.spawn(func() {
		defer close(over)
		time.Sleep(s.late(r.id, 0))
		v.err = recv.Wait(ctx)
		r.note(&v, e, false, context.Canceled, errOver)
		if s.arg == 0 || !propagated(v) || v.of != c.name || !r.isOf(e.in, v) {
			return
		}
		text := fmt.Sprintf("late%d%s of rank %d", s.id, e.path, r.id)
		r.tooLate(e, c, text)
		late := event{what: "a listener's late Signal", comm: c, begin: r.now(), listens: true}
		late.err = c.Signal(e.ctx, errors.New(text))
		if m, ok := late.err.(*mpicx.MPIError); ok && m.Class == mpicx.ClassComm { // it is closed
			return
		}
		r.note(&late, e, false)
		if late.of == c.name && late.key != v.key { // one of an ancestor may have come
			r.failf("T3", "a Signal with the context of a scope whose error is %s returns %v at rank %d", v.key, late.err, r.id)
		}
	})
}

// isOf reports whether an event's error is that of its scope, which has no other inside.
func (r *rank) isOf(in *running, v event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return in.comm == v.comm && in.how != guard && in.plain() && (in.returned == 0 || in.ended > 0 && in.key == v.key)
}

// tooLate records an error that no rank may be told of.
func (r *rank) tooLate(e *env, c *inst, text string) {
	r.raiseIn(e.in, c, r.id, text, false, false)
	r.mu.Lock()
	defer r.mu.Unlock()
	what := report{c.name, c.rankOf(r.id), text, false}
	r.raised[what][0].never = true
}

// signalLater begins a goroutine that signals, unless the function has returned before.
func (r *rank) signalLater(s *step, e *env, c *inst) {
	e = e.besides(e.ctx, 0)
	in := e.in.on(c.name)
	f := &ownError{text: fmt.Sprintf("e%d%s of rank %d", s.id, e.path, r.id)}
	r.spawn(func() {
		time.Sleep(s.late(r.id, 0))
		r.mu.Lock()
		if in.returned > 0 {
			r.mu.Unlock()
			return
		}
		in.watchers++
		never := e.in.settled(c)
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if in.watchers--; in.watchers == 0 && in.idle != nil {
				close(in.idle)
			}
		}()
		if never {
			r.tooLate(e, c, f.text)
		} else {
			r.raiseIn(e.in, c, r.id, f.text, false, false)
		}
		v := event{what: "a watcher's Signal", comm: c, begin: r.now()}
		v.err = c.Signal(e.ctx, f)
		r.mu.Lock()
		var allowed []error
		if e.in.returned > 0 { // the context may end before
			allowed = append(allowed, context.Canceled)
		}
		r.mu.Unlock()
		r.note(&v, e, false, allowed...)
		if v.err == nil {
			r.failf("T5", "Signal on %s at rank %d returns nil", c.name, r.id)
		}
	})
}

// returns notes that a scope's function returns. It does not return nil while a watcher signals.
func (r *rank) returns(in *running, err error) {
	for _, f := range in.after {
		if err == nil {
			f()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for err == nil && in.watchers > 0 {
		idle := make(chan struct{})
		in.idle = idle
		r.mu.Unlock()
		<-idle
		r.mu.Lock()
	}
	in.returned = r.now()
}

// deferred returns the error with which a scope's function ends if a Wait inside has returned err.
func (r *rank) deferred(s *step, e *env, err error) error {
	r.mu.Lock()
	told := e.in.told != ""
	r.mu.Unlock()
	if s.defers == 0 || !isVerdict(err) || !told || hasType[*leftGuard](err) {
		return err
	}
	own := &ownError{text: fmt.Sprintf("d%d%s of rank %d", s.id, e.path, r.id)}
	switch s.defers {
	case deferWrap:
		return &deferring{own, err}
	case deferThrow:
		mpicx.Throw(own)
	}
	return own
}

func isDeferring(err error) bool { _, ok := err.(*deferring); return ok }

// deferring is an error of the program's own that has another inside.
type deferring struct {
	*ownError
	inside error
}

func (d *deferring) Unwrap() []error { return []error{d.ownError, d.inside} }
