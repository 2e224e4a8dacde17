package mpicx

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/ledger"
)

// scope is the context of a Try or Guard that is running.
type scope struct {
	context.Context
	cancel context.CancelCauseFunc
	comm   *Comm
	outer  context.Context
	entry  *ledger.Scope
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

// scopeOn returns the innermost scope on c that ctx is derived from, or nil.
func (c *Comm) scopeOn(ctx context.Context) *scope {
	s := scopeOf(ctx)
	for s != nil && s.comm != c {
		s = scopeOf(s.outer)
	}
	return s
}

// arriving is the cause of a context that a peer's error has ended, and of those
// derived from it: so one can tell it from a context that has ended by itself.
type arriving struct{ scope *scope }

func (*arriving) Error() string {
	return "mpicx: an error of another rank has ended the context: a Wait tells which"
}

func (*arriving) Is(err error) bool { return err == context.Canceled }

// interrupted returns the scope that a peer's error has ended, and ctx with it; nil:
// ctx has not ended, or by itself.
func interrupted(ctx context.Context) *scope {
	if ctx.Err() == nil {
		return nil
	}
	if a, ok := context.Cause(ctx).(*arriving); ok {
		return a.scope
	}
	return nil
}

// patient returns the context to wait with: if a peer's error has ended ctx, that
// around the Try, since the error itself is what the Wait reports. A deadline of ctx
// remains.
func patient(ctx context.Context) context.Context {
	s := interrupted(ctx)
	if s == nil {
		return ctx
	}
	outer := patient(s.outer)
	if mine, ok := ctx.Deadline(); ok {
		if its, ok := outer.Deadline(); !ok || mine.Before(its) {
			return newUntil(outer, mine)
		}
	}
	return outer
}

// until is a context with a deadline, which is not given up before that.
type until struct {
	context.Context
	cancel context.CancelFunc
}

func newUntil(ctx context.Context, deadline time.Time) *until {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	return &until{ctx, cancel}
}

// revived is a context with the values of one that a peer's error has ended.
type revived struct {
	context.Context
	values context.Context
}

func revive(ctx context.Context) context.Context {
	if interrupted(ctx) == nil {
		return ctx
	}
	return &revived{patient(ctx), context.WithoutCancel(ctx)}
}

func (r *revived) Value(key any) any {
	if v := r.values.Value(key); v != nil {
		return v
	}
	return r.Context.Value(key)
}

func (c *Comm) enterScope(ctx context.Context, guard bool) *scope {
	ctx = revive(ctx) // the error that ended it is another Try's
	s := &scope{comm: c, outer: ctx}
	s.Context, s.cancel = context.WithCancelCause(ctx)
	var around *ledger.Scope
	if o := c.scopeOn(ctx); o != nil {
		around = o.entry
	}
	c.proc.feed(func() { s.entry = c.ledger.Open(around, guard, s) })
	return s
}

// run calls fn, ends the scope's context, and returns what fn returned or threw.
func (s *scope) run(fn func(context.Context) error) (err error) {
	defer s.exit()
	defer func() {
		switch v := recover().(type) {
		case nil:
		case future.Thrown:
			err = v.Err
		default:
			panic(v)
		}
		if p, ok := err.(*future.Panicked); ok {
			panic(p) // of a goroutine of the function's: it goes on here (C3)
		}
	}()
	return fn(s)
}

func (s *scope) exit() {
	s.comm.proc.feed(s.entry.Exit)
	s.cancel(nil)
}

// close lets errors end the scope around this one again.
func (s *scope) close() { s.comm.proc.feed(s.entry.Close) }

// reason returns the error that all ranks have in place of err, if err says no more
// than that an error of another rank has ended the function's context. Else it
// returns nil: err is this rank's own.
func (s *scope) reason(err error) error {
	by := interrupted(s)
	if by == nil || !errors.Is(err, context.Canceled) {
		return nil
	}
	if v := by.comm.verdict(by.outer); v != nil {
		return v
	}
	return by.heard()
}

// heard returns the error that has ended the scope's context, if another goroutine of the
// program was told, and no Try has returned it.
func (s *scope) heard() error {
	s.comm.proc.mu.Lock()
	defer s.comm.proc.mu.Unlock()
	e := s.entry.Heard()
	if e == nil {
		return nil
	}
	if p, ok := e.Face.(*PropagatedError); ok && atomic.LoadUint32(&p.told) != 0 {
		return nil
	}
	return e.Face
}

// path returns where on its communicator the scope is, as a Failure has it.
func (s *scope) path() string {
	var b []byte
	for _, k := range s.entry.Path() {
		b = binary.AppendUvarint(b, uint64(k))
	}
	return string(b)
}

// inside says whether all of the errors were raised inside of an inner Try that this
// rank has not come to. Other ranks handle them there, and go on here.
func (s *scope) inside(err error) bool {
	p, ok := err.(*PropagatedError)
	if !ok || p.comm != s.comm {
		return false
	}
	own := s.path()
	return !slices.ContainsFunc(p.Failures, func(f Failure) bool {
		rest, inner := strings.CutPrefix(f.path, own)
		k, n := binary.Uvarint([]byte(rest))
		return !inner || n <= 0 || k <= uint64(s.entry.Entered())
	})
}
