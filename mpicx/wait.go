package mpicx

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// keeper is the Comm as its futures see it. It says which errors end their Waits, and
// which contexts do.
type keeper Comm

var _ waiting.Keeper = (*keeper)(nil)

func (k *keeper) Park(ctx context.Context) (*waiting.Place, <-chan struct{}) {
	place := k.proc.place
	(*Comm)(k).notInReduction("waits", "for an operation")
	if !k.proc.enter(&k.ledger) {
		place = k.proc.newPlace()
		place.Spare = true
	}
	ended := ctx.Done()
	if ended != nil {
		ctx, _ = k.listen(ctx)
		ended = ctx.Done()
	}
	return place, ended
}

// Yield lets other ranks run, unless they are other processes.
func (k *keeper) Yield() {
	if k.proc.driver == nil {
		k.proc.yielder.yield()
	}
}

// Look ends operations that need ranks which have returned.
func (k *keeper) Look()                       { k.t.Look() }
func (k *keeper) Unpark(place *waiting.Place) { k.proc.leave(!place.Spare) }

// listen returns the context whose end ends a Wait in ctx, and the scope whose error has
// ended that; nil: none has so far. The context of a scope on this communicator, or on one
// that it is derived from, is left out: the error that ends it ends the operation as well.
// So is one whose error the program was told, unless this goroutine missed it; but the
// errors of scopes inside of that are not.
func (k *keeper) listen(in context.Context) (context.Context, *scope) {
	concerns := func(s *scope) bool {
		return !k.isOf(s) && !s.told.Load() || k.isApart(s) && s.isRevoked() || s.missed(in) != nil
	}
	ctx := in
	for {
		if s := interrupted(ctx); s != nil {
			if concerns(s) {
				return ctx, s
			}
			ctx = s.around(ctx)
		} else if s, ok := ctx.(*scope); ok && k.isOf(s) && !k.isApart(s) {
			ctx = s.outer
		} else if in.Err() == nil {
			return ctx, nil
		} else {
			ctx = within(in, ctx, concerns)
			return ctx, interrupted(ctx)
		}
	}
}

// isOf says whether the errors that the scope is told are errors of the communicator.
func (k *keeper) isOf(s *scope) bool { return k.ledger.DerivedFrom(&s.comm.ledger) }

// isApart says whether the scope's communicator may be revoked and this one go on.
func (k *keeper) isApart(s *scope) bool { return s.comm != (*Comm)(k) && !s.comm.propagates() }

// Ended says why a Wait whose context ended is over: because of an error of the
// communicator that the context's Try is on, or for the context's own cause. It
// is nil if the program was told the error already. Then the Wait continues.
func (k *keeper) Ended(ctx context.Context) error {
	if ctx.Err() == nil { // no message will ever move
		return (*Comm)(k).verdict(ctx)
	}
	s := interrupted(ctx)
	for {
		if s != nil {
			if err := s.reported(ctx, (*Comm)(k)); err != nil {
				return err
			}
		}
		var rest context.Context
		if rest, s = k.listen(ctx); s == nil { // what is reported, it passes over
			if rest.Err() != nil && interrupted(rest) == nil {
				return context.Cause(rest)
			}
			return nil
		}
	}
}

// Told notes that the program was told that the communicator is revoked.
func (k *keeper) Told(cell *waiting.Cell, err error) {
	k.proc.leaks.told(cell)
	if errors.Is(err, ErrRevoked) {
		(*Comm)(k).know(err)
	}
}

// Failing notes that a future is about to end with err. Once the program has returned it could not
// have been waited for.
func (k *keeper) Failing(cell *waiting.Cell, err error) {
	if l := k.proc.leaks; l != nil && !k.proc.returned.Load() && !k.proc.over.Load() {
		l.failing(&k.ledger, k.name, cell, err)
	}
}

func (k *keeper) MayHaveVerdict() bool { return k.ledger.NeedsLook() }

// Verdict takes the error that the program is to be told. A reduction's function is told
// none: it must not wait.
func (k *keeper) Verdict(ctx context.Context) error {
	(*Comm)(k).notInReduction("waits", "for an operation")
	return (*Comm)(k).verdict(ctx)
}

func (k *keeper) TryVerdict() (bool, error) {
	(*Comm)(k).notInReduction("waits", "for an operation")
	return k.tryVerdict(ledger.Take)
}

func (k *keeper) tryVerdict(m ledger.Mode) (bool, error) {
	k.proc.exitIfDead()
	wait, err := (*Comm)(k).look(m)
	if err == nil && wait != nil {
		k.proc.feed(k.proc.ledger.Answer)
	}
	return err != nil || wait == nil, err
}

func (k *keeper) Watch() {
	(*Comm)(k).notInReduction("waits", "for an operation")
	k.proc.watch(1)
}

func (k *keeper) Unwatch() { k.proc.watch(-1) }

// reported returns the error that has ended the scope's context, for a Wait on c in ctx:
// nil, if the program was told. Where c does not have the error, the program may be about
// to repair the communicator that has.
func (s *scope) reported(ctx context.Context, c *Comm) error {
	defer s.told.Store(true)
	switch {
	case c.ledger.DerivedFrom(&s.comm.ledger):
		if err := c.verdict(s.outer); err != nil { // the oldest, which may be another
			return err
		}
	case !s.comm.isBroken() || !s.comm.knows():
		if wait, err := s.comm.look(ledger.Peek); wait != nil || err != nil {
			c.proc.feed(c.ledger.GiveUp) // of a TryAll that this is the barrier of
		}
		if err := s.comm.verdict(s.outer); err != nil {
			return err
		}
	}
	if c != s.comm && s.isRevoked() {
		s.comm.proc.feed(s.comm.ledger.KnowRevoked)
		return fmt.Errorf("%s, whose Try or Guard this is in: %w", s.comm.name, ErrRevoked)
	}
	return s.missed(ctx)
}

// isRevoked says whether the scope's communicator is revoked, and the program was not told.
func (s *scope) isRevoked() bool {
	s.comm.proc.mu.Lock()
	defer s.comm.proc.mu.Unlock()
	return s.comm.ledger.RevokedUntold()
}

// missed returns the error that has ended the scope's context, where another goroutine of
// the rank was told it, and this one, which waits in ctx, is not the scope's own: what it
// waits for may never come, and it has not handled the error, as the own may have done.
func (s *scope) missed(ctx context.Context) error {
	if v := s.heard(); v != nil && !s.isOnStack(ctx) {
		return v
	}
	return nil
}

// scopeRunName is that of what calls the function of a scope. CallsOf counts it.
const scopeRunName = ownPackage + "(*scope).run"

// isOnStack says whether this goroutine, which waits in ctx, is the scope's own: the stack
// has the calls of the scope and of those inside of it. Another goroutine has only those
// that it has opened itself.
func (s *scope) isOnStack(ctx context.Context) bool {
	calls := 1
	for inner := scopeOf(ctx); inner != nil && inner != s; inner = scopeOf(inner.outer) {
		calls++
	}
	return callsOf(scopeRunName) >= calls
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
