package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mpicx/go-mpicx/future"
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

// group runs a step's goroutines. Its error is that of the first one that fails.
func (r *rank) group(s *step, e *env, c *inst) error {
	var child *inst
	if slices.Contains(s.crew, crewChild) {
		v := event{what: "Dup", comm: c, begin: r.now(), quiet: true}
		made, err := c.Dup().Get(e.ctx)
		v.err = err
		if r.note(&v, e, false); err != nil {
			return err
		}
		child = &inst{Comm: made, name: fmt.Sprintf("%s/g%d%s", c.name, s.id, e.path), parent: c, members: c.members}
		r.joins(child)
	}
	g, ctx := new(errgroup.Group), e.ctx
	if s.stops {
		g, ctx = errgroup.WithContext(ctx)
	}
	var mu sync.Mutex
	var failed []error                        // by goroutines of the group
	over, end := context.WithCancelCause(ctx) // when those have ended that end by themselves
	defer end(nil)
	var finite sync.WaitGroup
	for k, member := range s.crew {
		m := &crewmate{r, s, e.besides(ctx, 1000+16*s.id+k), c, child, k, over}
		m.e.group = func(err error) bool {
			if child != nil && isVerdict(err) {
				return r.ownerOf(err, child) == child
			}
			if err == nil || isVerdict(err) || strings.HasPrefix(err.Error(), gone) && e.chained(c) {
				return false // an error has ended the context: it ends the operation too (T1)
			}
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(failed, func(by error) bool { return errors.Is(err, by) })
		}
		if member < crewStop {
			finite.Add(1)
		}
		g.Go(func() (err error) {
			defer func() {
				mu.Lock()
				if err != nil {
					failed = append(failed, err)
				}
				mu.Unlock()
				if member < crewStop {
					finite.Done()
				}
			}()
			defer future.Catch(&err)
			time.Sleep(s.late(r.id, k))
			return m.do(member)
		})
	}
	go func() {
		finite.Wait()
		end(errOver)
	}()
	err := g.Wait()
	ofChild := child != nil && r.ownerOf(err, child) == child
	if isVerdict(err) && !ofChild { // now this goroutine knows
		v := event{what: "group", comm: c, begin: r.now(), err: err}
		r.note(&v, e, false)
	}
	return err
}

// noteInGroup is note, unless the error is that with which a group has ended its context. Then it returns
// false.
func (r *rank) noteInGroup(v *event, e *env) bool {
	if e.group != nil && e.group(v.err) {
		return false
	}
	r.note(v, e, false)
	return true
}

// crewmate is one goroutine of a group.
type crewmate struct {
	*rank
	s     *step
	e     *env
	c     *inst
	child *inst // of a crewChild
	k     int
	over  context.Context // ends when those have ended that end by themselves
}

func (m *crewmate) do(member int) error {
	const child = -1 // the variable
	part := &step{id: 1000 + 16*m.s.id + m.k, kind: doOp, comm: m.s.comm, outside: m.s.outside}
	switch member {
	case crewOp:
		part.arg = opBarrier
		return m.operate(part, m.e, m.c)
	case crewRing:
		part.arg = opRing
		return m.operate(part, m.e, m.c)
	case crewTry:
		part.arg, part.delay = opRing, nil
		try := &step{id: part.id, kind: doScope, how: try, comm: m.s.comm, body: []*step{part}}
		return m.scope(try, m.e, m.c)
	case crewChild:
		part.arg, part.comm = opRing, child
		body := []*step{part}
		if m.s.arg == 1 {
			body = append(body, &step{id: part.id, kind: doRaise, how: byReturn, comm: child, ranks: m.s.ranks})
		}
		all := &step{id: part.id, kind: doScope, how: tryAll, comm: child, body: body}
		m.e.comms = map[int]*inst{child: m.child}
		return m.scope(all, m.e, m.child)
	case crewRaise:
		if m.s.has(m.id) {
			return m.raiseBy(m.s, m.e, m.c)
		}
		return nil
	case crewStop:
		<-m.over.Done()
		if err := m.e.ctx.Err(); err != nil {
			return fmt.Errorf("%s, at %d: %w", gone, m.now(), err)
		}
		return nil
	case crewErr:
		return m.ask("Err", m.c.Err)
	}
	recv := mpicx.Recv(m.c.Comm, []int64{0}, m.c.Rank(), tagSelf)
	if member == crewTest {
		return m.ask("Test", func() error {
			done, err := recv.Test()
			if done && err == nil {
				m.failf("P3", "rank %d receives on %s a message that nobody sent", m.id, m.c.name)
			}
			return err
		})
	}
	ctx := m.over
	if m.s.outside && m.e.chained(m.c) {
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(m.outside)
		defer context.AfterFunc(m.over, func() {
			// By hand, a communicator around may be revoked: that ends the context alone.
			if cause := context.Cause(m.over); cause == errOver || m.e.group(cause) || m.byHand {
				end(errOver)
			}
		})()
		defer end(nil)
	}
	return m.told("Recv of nothing", func() error { return recv.Wait(ctx) })
}

// gone begins the message of a function or goroutine that has found its context ended.
const gone = "gone"

// ask asks for an error until there is one, or the others have ended.
func (m *crewmate) ask(what string, ask func() error) error {
	for range 10 * long / tick {
		ended := m.over.Err() != nil
		err := m.told(what, ask)
		switch cause := context.Cause(m.over); {
		case err != nil || ended && (cause == errOver || m.e.group(cause)):
			return err
		case ended && (m.byHand || !m.e.chained(m.c) || !m.e.in.plain()): // by hand: of a revoked communicator around
			return fmt.Errorf("%s, at %d: %w", gone, m.now(), m.over.Err())
		}
		time.Sleep(tick)
	}
	if m.over.Err() == nil { // the others wait: that is a hang
		return nil
	}
	m.failf("T1", "%s on %s at rank %d finds no error, though the context has ended: %v", what, m.c.name, m.id, context.Cause(m.over))
	return nil
}

// told calls a function that the end of the others ends.
func (m *crewmate) told(what string, call func() error) error {
	v := event{what: what + " in a goroutine", comm: m.c, begin: m.now()}
	v.err = call()
	switch {
	case v.err == nil || !isVerdict(v.err) && errors.Is(v.err, errOver):
		return nil
	default:
		m.noteInGroup(&v, m.e)
	}
	return v.err
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
