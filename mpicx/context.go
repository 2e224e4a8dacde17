package mpicx

import (
	"cmp"
	"context"

	"github.com/mpicx/go-mpicx/internal/ledger"
)

// scope is a running Try, TryAll or Guard, and the context of its function.
type scope struct {
	context.Context // ends with the function, or by the first error that concerns the scope
	cancel          context.CancelCauseFunc
	comm            *comm
	running         bool            // the function has been called and has not returned
	handle          *Comm           // the program uses it as long as the function runs
	outer           context.Context // the context of the call, or one that alive made from it
	entry           *ledger.Scope   // comm.proc.mu protects it

	// own ends by an error of this scope, or when the scope closes. So it still tells of an error
	// if Context has ended before, for another reason. It is nil until it is first needed; endOwn
	// ends it. comm.proc.mu protects both.
	own    context.Context
	endOwn context.CancelCauseFunc
}

// enterScope opens a scope on c inside the scopes of ctx. The scope's context ends with the first
// error that concerns it. If ctx belongs to a scope that is over and that an error has ended,
// enterScope returns that error (T3), and the scope is not open.
func (c *Comm) enterScope(ctx context.Context, guard bool) (*scope, error) {
	ctx = alive(ctx)
	s := &scope{comm: c.comm, handle: c, outer: ctx}
	s.Context, s.cancel = context.WithCancelCause(ctx)
	var outside *ledger.Scope
	if o := scopeOf(ctx); o != nil && o.comm.proc == c.proc {
		outside = o.entry
	}
	var over error
	c.proc.feed(func() {
		if over = c.proc.overBy(ctx); over == nil {
			s.entry = c.ledger.Open(outside, guard, s)
		}
	})
	return s, over
}

type scopeKey struct{}

// Value implements context.Context. Under scopeKey it returns the scope itself, by which scopeOf
// finds the scope of a derived context.
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
func (c *comm) scopeOn(ctx context.Context) *scope {
	s := scopeOf(ctx)
	for s != nil && s.comm != c {
		s = scopeOf(s.outer)
	}
	return s
}

// overBy returns the error with which a scope of ctx is over, or nil. The caller holds mu.
func (p *proc) overBy(ctx context.Context) error {
	for s := scopeOf(ctx); s != nil; s = scopeOf(s.outer) {
		if s.comm.proc != p {
			continue
		}
		if e := s.entry.Over(); e != nil {
			return e.Face
		}
	}
	return nil
}

// hasLeft says whether a scope of ctx is over. The caller holds mu.
func (p *proc) hasLeft(ctx context.Context) bool {
	for s := scopeOf(ctx); s != nil; s = scopeOf(s.outer) {
		if s.comm.proc == p && s.entry.Closed() {
			return true
		}
	}
	return false
}

// endOf returns what a Wait in ctx ends with: the error with which a scope of ctx is over or, if
// there is none, cause.
func (p *proc) endOf(ctx context.Context, cause error) error {
	return locked(&p.mu, func() error { return cmp.Or(p.overBy(ctx), cause) })
}

// isOver says whether the scope's function has returned.
func (s *scope) isOver() bool { return locked(&s.comm.proc.mu, s.entry.Closed) }

// known returns the error of the scope, or nil if it is not known.
func (s *scope) known() *ledger.Error {
	return locked(&s.comm.proc.mu, func() *ledger.Error {
		e, _ := s.entry.Failure()
		return e
	})
}

// arriving is the cause of a context that a peer's error has ended, and of contexts derived from
// it. It distinguishes them from contexts that have ended for other reasons.
type arriving struct{ scope *scope }

func (a *arriving) Error() string {
	if e := a.scope.known(); e != nil {
		return "mpicx: the context has ended: " + e.Face.Error()
	}
	return "mpicx: an error of another rank has ended the context; a Wait returns it"
}

func (*arriving) Is(err error) bool { return err == context.Canceled }

// interrupted returns the scope whose end by a peer's error has ended ctx. It returns nil if ctx
// has not ended, or has ended for another reason.
func interrupted(ctx context.Context) *scope {
	if ctx.Err() == nil {
		return nil
	}
	if a, ok := context.Cause(ctx).(*arriving); ok {
		return a.scope
	}
	return nil
}

// patient returns the context to wait with. If a peer's error has ended ctx, this is the context
// around the Try, because the Wait has to report the error itself. A deadline of ctx remains.
func patient(ctx context.Context) context.Context {
	s := interrupted(ctx)
	if s == nil {
		return ctx
	}
	return patient(s.around(ctx))
}

// around returns the context around the scope, with the deadline of ctx, which is
// derived from the scope's.
func (s *scope) around(ctx context.Context) context.Context {
	if mine, ok := ctx.Deadline(); ok {
		if its, ok := s.outer.Deadline(); !ok || mine.Before(its) {
			until, cancel := context.WithDeadline(s.outer, mine)
			context.AfterFunc(until, cancel) // its timer is released only at the deadline
			return until
		}
	}
	return s.outer
}

// revived is a context that has not ended. Its values are those of a context that a peer's error
// has ended.
type revived struct {
	context.Context
	values context.Context
}

func (r *revived) Value(key any) any {
	if v := r.values.Value(key); v != nil {
		return v
	}
	return r.Context.Value(key)
}

// alive returns a context for a scope that begins in ctx. If ctx has ended in vain, alive returns
// one that has not ended.
func alive(ctx context.Context) context.Context {
	alive := ctx
	for s := interrupted(alive); s != nil && s.inVain(); s = interrupted(alive) {
		alive = s.around(alive)
	}
	if alive == ctx {
		return ctx
	}
	return &revived{within(ctx, alive, func(*scope) bool { return true }), context.WithoutCancel(ctx)}
}

func (s *scope) isEnded() bool { return locked(&s.comm.proc.mu, s.entry.Ended) }

// inVain says whether the scope's context has ended, but by an error of another scope.
func (s *scope) inVain() bool { return locked(&s.comm.proc.mu, s.entry.InVain) }

// within returns a context derived from ctx that errors of some scopes end, too: of those scopes of
// the context in that are inside of ctx and for which concerns returns true.
func within(in, ctx context.Context, concerns func(*scope) bool) context.Context {
	for s, last := scopeOf(in), scopeOf(ctx); s != nil && s != last; s = scopeOf(s.outer) {
		if own := s.ownErrors(); concerns(s) {
			both, end := context.WithCancelCause(ctx)
			if ctx = both; own.Err() != nil {
				end(context.Cause(own))
				break
			}
			context.AfterFunc(own, func() { end(context.Cause(own)) })
		}
	}
	return ctx
}

// ownErrors returns own, and makes it if necessary.
func (s *scope) ownErrors() context.Context {
	s.comm.proc.mu.Lock()
	defer s.comm.proc.mu.Unlock()
	if s.own == nil || s.own.Err() != nil && s.entry.InVain() {
		s.own, s.endOwn = context.WithCancelCause(context.Background())
		if s.entry.Ended() && !s.entry.InVain() {
			s.endOwn(&arriving{s})
		}
	}
	return s.own
}

// end ends the scope's context, and own if there is one, with this cause.
func (s *scope) end(cause error) {
	s.cancel(cause)
	s.comm.proc.mu.Lock()
	defer s.comm.proc.mu.Unlock()
	if s.own != nil {
		s.endOwn(cause)
	}
}
