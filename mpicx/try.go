package mpicx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/future"
)

// SignalError has every rank of the communicator, this one too, get a
// *PropagatedError with a Failure of this code: from the Wait each is in, or
// from its next operation (paper section III-A, signal_error). It returns this
// rank's once all have taken part, or ctx's cause if that comes first; the error
// is on its way then all the same.
func (c *Comm) SignalError(ctx context.Context, code int) error {
	return c.signal(ctx, &codeError{code})
}

// Signal is SignalError for a Go error, of which the others get the text, and
// the code if it has a method ErrorCode() int. In what Signal returns,
// errors.Is and errors.As find err itself. A nil err is an *MPIError.
func (c *Comm) Signal(ctx context.Context, err error) error {
	if err == nil {
		return mpiErrorf("Signal", ClassOther, "a nil error, expected one to tell the others")
	}
	return c.signal(ctx, err)
}

// codeError is an error that is only a code.
type codeError struct{ code int }

func (e *codeError) Error() string  { return fmt.Sprintf("error %d", e.code) }
func (e *codeError) ErrorCode() int { return e.code }

func (c *Comm) signal(ctx context.Context, err error) error {
	r := c.raise(newFailure(err, 2), false, traced(err))
	if err := c.verdict(ctx); err != nil {
		return err
	}
	if r == nil { // there is nobody to tell
		return c.unreported()
	}
	c.trouble.mu.Lock() // another goroutine of this rank has reported it
	defer c.trouble.mu.Unlock()
	return r.verdict
}

// Try makes local errors everyone's. It runs fn, and an error that fn returns or
// throws goes to all ranks as by Signal; so each rank's Try returns the same
// *PropagatedError, whatever fn was doing there, and the communicator goes on.
// Panics other than thrown errors pass through: see Guard.
//
// The context that fn gets ends the moment an error of a peer arrives, so that
// computations and I/O inside stop too. A Wait with it reports that error.
//
// An error that all ranks have already, from a Wait inside fn, is returned as
// fn returned it.
//
// Calls may nest: an error is for the innermost on its communicator. If it comes
// while a rank is between two inner calls, it ends the outer one's context there;
// Waits with that go on to work. Try does not wait for the other ranks: where
// all should leave an inner call before any begins the next, take TryAll.
func (c *Comm) Try(ctx context.Context, fn func(context.Context) error) error {
	s := c.enterScope(ctx, false)
	defer s.leaveOuter()
	err := s.run(fn)
	switch {
	case err == nil:
		err = c.verdict(ctx)
	case c.everyoneHas(err):
	case s.excuses(err):
		// What fn says is that its context ended; what ended it is the error.
		if v := c.verdict(ctx); v != nil {
			err = v
		}
	default:
		err = c.Signal(ctx, err)
	}
	markTold(err)
	return err
}

// TryAll is Try that no rank leaves with nil before all know that all have
// succeeded. It is collective.
func (c *Comm) TryAll(ctx context.Context, fn func(context.Context) error) error {
	err := c.Try(ctx, func(ctx context.Context) error {
		if err := fn(ctx); err != nil {
			return err
		}
		return c.Barrier().Wait(ctx)
	})
	if err != nil {
		return err
	}
	// All have succeeded; now all know once all have begun a second barrier. An
	// error that ends it is not of fn: the next operation reports it.
	f := c.Barrier()
	for {
		ctx = patient(ctx)
		if c.proc.await(f.Done(), ctx.Done()) {
			return nil
		}
		if patient(ctx) == ctx { // else that error has ended a Try around this one
			return f.Wait(ctx)
		}
	}
}

// Guard runs fn, and if it leaves by an error, a panic or runtime.Goexit, every
// other rank gets a *CommCorruptedError from this communicator for good: what a
// Comm's destructor does in the paper (section III-A). This rank waits for
// nobody. Guard returns fn's error; a panic goes on; a thrown error is returned.
//
// The context that fn gets ends when the communicator is corrupted.
func (c *Comm) Guard(ctx context.Context, fn func(context.Context) error) (err error) {
	s := c.enterScope(ctx, true)
	defer s.leaveOuter()
	err = errUnwinding
	defer c.unwinding(&err)
	err = s.run(fn)
	if s.excuses(err) {
		if v := c.verdict(ctx); v != nil {
			return v
		}
	}
	return err
}

// unwinding, deferred, corrupts c if the function it is deferred by leaves by an
// error or does not return, and lets it go on.
func (c *Comm) unwinding(err *error) {
	v := recover()
	cause := *err
	switch {
	case v != nil:
		cause = fmt.Errorf("panic: %v", v)
	case cause == errUnwinding:
		cause = ErrGoexit
	}
	if cause != nil {
		c.raise(newFailure(cause, 2), true, traced(cause))
	}
	if v != nil {
		panic(v)
	}
}

// errUnwinding is the error of a function that has not returned.
var errUnwinding = errors.New("mpicx: unwinding")

// everyoneHas says whether err is, or wraps, an error of c or of one that c is
// derived from, so that all ranks of c have it. If a Try has returned it before,
// the program has seen it; then what wraps it is an error of its own.
func (c *Comm) everyoneHas(err error) bool {
	var v *verdict
	if p, ok := errors.AsType[*PropagatedError](err); ok {
		v = &p.verdict
		if atomic.LoadUint32(&v.told) != 0 && err != error(p) {
			return false
		}
	} else if k, ok := errors.AsType[*CommCorruptedError](err); ok {
		v = &k.verdict
	}
	return v != nil && v.comm != nil && c.derivedFrom(v.comm)
}

func markTold(err error) {
	if p, ok := err.(*PropagatedError); ok {
		atomic.StoreUint32(&p.told, 1)
	}
}

// scope is the context of a Try or Guard that is running.
type scope struct {
	context.Context
	cancel context.CancelCauseFunc
	comm   *Comm
	outer  context.Context
	around *scope // the next one outside on the same communicator; nil: none
	guard  bool
	inner  atomic.Int32 // Try calls on the same communicator inside
	ended  atomic.Bool  // by an error of a peer
}

type scopeKey struct{}

// Value finds the scope itself from contexts derived from it.
func (s *scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// scopeOf returns the innermost scope that ctx is derived from, or nil.
func scopeOf(ctx context.Context) *scope {
	if s, ok := ctx.(*scope); ok {
		return s
	}
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}

// patient returns the context to wait with: if a peer's error ended ctx, that
// around the Try, since the error itself is what the Wait reports.
func patient(ctx context.Context) context.Context {
	for ctx.Err() != nil {
		s := scopeOf(ctx)
		if s == nil || !s.interrupted() {
			break
		}
		ctx = s.outer
	}
	return ctx
}

func (s *scope) interrupted() bool { return s.ended.Load() }

// excuses says whether err only tells that the scope's context has ended.
func (s *scope) excuses(err error) bool {
	return s.interrupted() && (errors.Is(err, context.Canceled) || errors.Is(err, errArriving))
}

func (c *Comm) enterScope(ctx context.Context, guard bool) *scope {
	ctx = patient(ctx) // the error that ended it is another Try's
	s := &scope{comm: c, outer: ctx, guard: guard}
	s.Context, s.cancel = context.WithCancelCause(ctx)
	for s.around = scopeOf(ctx); s.around != nil && s.around.comm != c; {
		s.around = scopeOf(s.around.outer)
	}
	if s.around != nil {
		s.around.inner.Add(1)
	}
	t := &c.trouble
	t.mu.Lock()
	if t.scopes == nil {
		t.scopes = make(map[*scope]struct{})
	}
	t.scopes[s] = struct{}{}
	t.mu.Unlock()
	s.catchUp()
	return s
}

// catchUp interrupts the scope for errors that came when it was not there, or
// that a Try inside of it was to report.
func (s *scope) catchUp() {
	for a := s.comm; a != nil; a = a.parent {
		t := &a.trouble
		t.mu.Lock()
		due := t.noticed || len(t.verdicts) > 0 || t.corrupted != nil
		corrupt := t.corrupted != nil
		t.mu.Unlock()
		if due {
			s.interrupt(corrupt)
		}
	}
}

// run calls fn, leaves the scope, and returns what fn returned or threw.
func (s *scope) run(fn func(context.Context) error) (err error) {
	defer s.leave()
	defer func() {
		switch v := recover().(type) {
		case nil:
		case future.Thrown:
			err = v.Err
		default:
			panic(v)
		}
	}()
	return fn(s)
}

func (s *scope) leave() {
	t := &s.comm.trouble
	t.mu.Lock()
	delete(t.scopes, s)
	t.mu.Unlock()
	s.cancel(nil)
}

// leaveOuter lets the next error interrupt the scope around this one, when the
// call that made this one ends: until then errors are this one's to report, its
// own signal too.
func (s *scope) leaveOuter() {
	if s.around != nil {
		s.around.inner.Add(-1)
		s.around.catchUp()
	}
}

// interrupt ends the scope because of a peer's error, unless that is for a Try
// inside of it, or the scope is a Guard's and the communicator goes on.
func (s *scope) interrupt(corrupt bool) {
	if s.guard && !corrupt || s.inner.Load() > 0 && !corrupt {
		return
	}
	if s.ended.CompareAndSwap(false, true) {
		s.cancel(errArriving)
	}
}

var errArriving = errors.New("mpicx: an error of another rank is arriving")

// interrupt ends the scopes on c and on what is derived from it.
func (c *Comm) interrupt(corrupt bool) {
	c.interruptOwn(corrupt)
	for _, d := range c.derived() {
		d.interrupt(corrupt)
	}
}

func (c *Comm) interruptOwn(corrupt bool) {
	t := &c.trouble
	t.mu.Lock()
	scopes := make([]*scope, 0, len(t.scopes))
	for s := range t.scopes {
		scopes = append(scopes, s)
	}
	t.mu.Unlock()
	for _, s := range scopes {
		s.interrupt(corrupt)
	}
}

func levelOf(corrupt bool) slog.Level {
	if corrupt {
		return slog.LevelError
	}
	return slog.LevelWarn
}

// log logs an event of the error channel.
func (c *Comm) log(level slog.Level, event string, round uint64, args ...any) {
	if log := c.proc.log; log != nil {
		args = append([]any{"rank", c.Rank(), "comm", c.name, "epoch", round}, args...)
		log.Log(context.Background(), level, event, args...)
	}
}
