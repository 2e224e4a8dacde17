package mpicx

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/internal/ledger"
)

// enterScope opens a scope on c inside the scopes of ctx. Its context ends with the first error
// that its function is to be told of.
func (c *Comm) enterScope(ctx context.Context, guard bool) *scope {
	ctx = c.revive(ctx)
	s := &scope{comm: c, outer: ctx}
	s.Context, s.cancel = context.WithCancelCause(ctx)
	var around *ledger.Scope
	if o := c.scopeOn(ctx); o != nil {
		around = o.entry
	}
	c.proc.feed(func() { s.entry = c.ledger.Open(around, guard, s) })
	return s
}

// revived is a context that has not ended, with the values of one that a peer's error has ended.
type revived struct {
	context.Context
	values context.Context
}

// revive returns a context for a scope on c. If an error of c, or of one that c is derived from,
// has ended ctx, the new scope may be the one that handles it, so the context has not ended. Any
// other error ends it too (P8), and so does an error that another goroutine was told of.
func (c *Comm) revive(ctx context.Context) context.Context {
	alive := ctx
	for s := interrupted(alive); s != nil && c.ledger.DerivedFrom(&s.comm.ledger) && s.missed(ctx) == nil; s = interrupted(alive) {
		alive = s.around(alive)
	}
	if alive == ctx {
		return ctx
	}
	alive = within(ctx, alive, func(s *scope) bool { return !c.ledger.DerivedFrom(&s.comm.ledger) })
	return &revived{alive, context.WithoutCancel(ctx)}
}

func (r *revived) Value(key any) any {
	if v := r.values.Value(key); v != nil {
		return v
	}
	return r.Context.Value(key)
}

// exit ends the scope's context: its function has returned.
func (s *scope) exit() {
	s.comm.proc.feed(s.entry.Exit)
	s.end(nil)
}

// close lets errors end the scope around this one again.
func (s *scope) close() { s.comm.proc.feed(s.entry.Close) }

// reason returns the error that all ranks have, if err says only that this error has ended the
// function's context. Otherwise err is this rank's own error, and reason returns nil.
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

// path returns the scope's path on its communicator, as a Failure's path.
func (s *scope) path() string {
	var b []byte
	for _, k := range s.entry.Path() {
		b = binary.AppendUvarint(b, uint64(k))
	}
	return string(b)
}

// inside says whether all failures of err were raised inside an inner Try that this rank has not
// come to. The other ranks handle them there, and continue in this Try.
func (s *scope) inside(err error) bool {
	p, ok := err.(*PropagatedError)
	if !ok || p.comm != &s.comm.ledger {
		return false
	}
	own := s.path()
	return !slices.ContainsFunc(p.Failures, func(f Failure) bool {
		rest, inner := strings.CutPrefix(f.path, own)
		k, n := binary.Uvarint([]byte(rest))
		return !inner || n <= 0 || k <= uint64(s.entry.Entered())
	})
}
