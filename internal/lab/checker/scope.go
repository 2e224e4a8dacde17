package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// leftGuard is an error that has come out of Guard, as the program sees it.
type leftGuard struct {
	comm string
	err  error
}

func (e *leftGuard) Error() string { return fmt.Sprintf("out of Guard of %s: %v", e.comm, e.err) }
func (e *leftGuard) Unwrap() error { return e.err }

// bare is err as the face returned it.
func bare(err error) error {
	for {
		e, ok := err.(*leftGuard)
		if !ok {
			return err
		}
		err = e.err
	}
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

// once runs the scope once. A step's panic comes out of Guard unchanged; the program treats it as
// an error.
func (r *rank) once(s *step, e *env, ctx context.Context, c *inst) (err error) {
	in := &running{step: s, comm: c, around: e.in, begun: r.now(), name: fmt.Sprint(s.id, e.path)}
	e.in = in
	for out := in.around; out != nil && s.how != guard; out = out.around {
		if out.how != guard && out.comm != c && out.comm.derivedFrom(c.name) {
			r.mu.Lock()
			r.inverted = true
			r.mu.Unlock()
		}
	}
	var local error // this rank's error, which it has told to no other rank yet
	name := [...]string{"Try", "TryAll", "Guard"}[s.how]
	before := len(r.known())
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
			case !returned && !ok && s.how != guard:
				r.leavesTry(c, before)
			case s.how == guard && v != nil && !ok:
				r.raise(c, r.id, fmt.Sprintf("panic: %v", v), true, true)
			case err == nil || !returned && v == nil || r.isStop(err, c):
			case s.how == guard:
				r.raise(c, r.id, err.Error(), true, true)
			default:
				// The error of a context that was ended by an error stands for that error, which is
				// on its way.
				mine := !isVerdict(err) || isDeferring(err)
				own := mine && !errors.Is(err, context.Canceled)
				if own && !strings.Contains(err.Error(), " of rank ") { // the library's error: wrapped to make it unique
					err = fmt.Errorf("at %d: %w", r.now(), err)
				}
				if own {
					local = err
				}
				r.mu.Lock()
				never := e.in.settled(c) || errors.Is(err, context.Canceled) && s.plain()
				r.mu.Unlock()
				if r.several && never && mine {
					r.tooLate(e, c, err.Error())
				} else {
					r.raiseIn(e.in, c, r.id, err.Error(), false, own && !r.mayStop(err, c))
				}
			}
			if v != nil || err != nil || !returned {
				r.returns(in, errOver)
			}
			if v != nil {
				panic(v)
			}
		}()
		err = r.all(s.body, e)
		if err == nil {
			r.returns(in, nil)
		} else {
			err = r.deferred(s, e, err)
		}
		returned = true
		return err
	}
	r.enlist(r.scoped, c)
	if s.how == guard {
		r.enlist(r.guarded, c)
	}
	begin := r.now()
	defer func() {
		for _, f := range in.after {
			f()
		}
		if v := recover(); v != nil {
			p, ok := v.(panicked)
			if !ok || s.how != guard {
				panic(v)
			}
			r.unwinds(c)
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	switch s.how {
	case try:
		err = c.Try(ctx, body)
	case tryAll:
		err = c.TryAll(ctx, body)
	case guard:
		if err = c.Guard(ctx, body); err != nil && !r.isStop(err, c) {
			r.unwinds(c)
			if !r.above(err, c) { // enclosing scopes see another error
				err = &leftGuard{c.name, err}
			}
		}
	}
	if s.how != guard {
		v := event{what: name, comm: c, begin: begin, err: err, quiet: true, scope: true}
		r.note(&v, e, false)
		r.mu.Lock()
		in.ended, in.of, in.key, in.failed = v.end, v.of, v.key, err != nil
		r.mu.Unlock()
		if local != nil {
			r.origin(name, c, local, err)
		}
	}
	return err
}

// known returns the communicators that the rank has.
func (r *rank) known() []*inst {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.insts
}

// leavesTry notes that a panic or runtime.Goexit leaves a Try of c. It corrupts what was made from c inside.
func (r *rank) leavesTry(c *inst, before int) {
	for _, d := range r.known()[before:] {
		if d.derivedFrom(c.name) {
			r.raise(d, r.id, fmt.Sprintf("a panic or runtime.Goexit has left the Try on %v in which it was made", c.Comm), true, false)
		}
	}
}

// origin checks what a Try returns at the rank whose error made its function fail.
func (r *rank) origin(name string, c *inst, local, err error) {
	if err == nil {
		r.failf("P1", "%s on %s at rank %d returns nil after %q", name, c.name, r.id, local)
	}
	v, ok := errors.AsType[*mpicx.PropagatedError](err)
	if !ok {
		return
	}
	if r.several && r.ofComm(err, c) && !c.unwound && !errors.Is(err, local) {
		r.failf("T2", "errors.Is does not find %q in what %s on %s returns at rank %d after it: %v", local, name, c.name, r.id, err)
	}
	if errors.Is(err, local) && !slices.ContainsFunc(v.Failures, func(f mpicx.Failure) bool { return f.Message == local.Error() }) {
		r.unsent(c, local.Error())
	}
	for _, f := range v.Failures {
		if f.Rank == c.Rank() && f.Message == local.Error() && !errors.Is(err, local) {
			r.failf("P2", "errors.Is does not find %q in what %s on %s returns at its origin: %v", local, name, c.name, err)
		}
	}
}

// above reports whether err is an error of a communicator that c is derived from.
func (r *rank) above(err error, c *inst) bool {
	owner := r.ownerOf(err, c)
	return owner != nil && owner != c
}

// ownerOf returns the communicator of a verdict that a rank of c was told of: c, a communicator
// that c is derived from, or one of the others.
func (r *rank) ownerOf(err error, c *inst, others ...*inst) *inst {
	return r.owner(verdictOf(bare(err)), append([]*inst{c}, others...)...)
}

// unit notes how a TryAll ended at this rank.
func (r *rank) unit(s *step, e *env, c *inst, err error) {
	outcome := "nil"
	for a := c; a != nil; a = a.parent {
		if a.unwound { // a corruption is on its way to the others
			return
		}
	}
	if r.ofComm(err, c) {
		outcome = verdictOf(err).Error()
		for _, f := range failuresOf(err) {
			if r.skewed(e.in.place(c.name), c.name, f) {
				return
			}
		}
	} else if err != nil {
		return // of a communicator that c is derived from, or final
	}
	r.outcome(fmt.Sprintf("TryAll: number %d%s on %s", s.id, e.path, c.name), outcome)
}

// ofComm reports whether err is a PropagatedError of c itself.
func (r *rank) ofComm(err error, c *inst) bool {
	if _, out := err.(*leftGuard); out {
		return false
	}
	ok := isPropagation(err)
	return ok && r.ownerOf(err, c) == c
}

func isPropagation(err error) bool { return hasType[*mpicx.PropagatedError](err) }

// verdictOf is the verdict that a Try returns, which may wrap an error of this rank.
func verdictOf(err error) error {
	if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
		return p
	}
	if k, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
		return k
	}
	return err
}

// asThrown returns the error that a panic's value carries, if it was thrown.
func asThrown(v any) (err error, ok bool) { //nolint:revive // the order of a type assertion
	t, ok := v.(future.Thrown)
	return t.Err, ok
}

// unwinds notes that the rank has left c's Guard by an error of its own.
func (r *rank) unwinds(c *inst) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.unwound = true
}
