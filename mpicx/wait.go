package mpicx

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// keeper is the keeper of a Comm's futures. It decides which errors and which contexts end
// Waits on them.
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

// Yield lets other ranks run or, if they are other processes, messages of theirs come.
func (k *keeper) Yield() {
	if d := k.proc.driver; d != nil {
		d.Glance()
	} else {
		k.proc.yielder.yield()
	}
}

// Look ends operations that need ranks which have returned.
func (k *keeper) Look()                       { k.t.Look() }
func (k *keeper) Unpark(place *waiting.Place) { k.proc.leave(!place.Spare) }

// listen returns the context whose end ends a Wait in ctx. If it has ended, listen also
// returns the scope whose error has ended it, or nil if no error has.
//
// Contexts of scopes on this communicator, or on one that it is derived from, are left out,
// because the error that ends them ends the operation too. A scope whose error the program
// was told is left out too, unless this goroutine has missed the error. Scopes inside one that
// is left out still count.
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

// isOf says whether errors of the scope's communicator are errors of this one.
func (k *keeper) isOf(s *scope) bool { return k.ledger.DerivedFrom(&s.comm.ledger) }

// isApart says whether this communicator works even if the scope's is revoked.
func (k *keeper) isApart(s *scope) bool { return s.comm != (*Comm)(k) && !s.comm.propagates() }

// Ended returns the error of a Wait whose context has ended: an error of the communicator of
// the context's Try, or the context's own cause. It returns nil if the program was told the
// error already; the Wait then continues.
func (k *keeper) Ended(ctx context.Context) error {
	if ctx.Err() == nil { // the transport has failed
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
		if rest, s = k.listen(ctx); s == nil { // errors that are reported are left out
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

// Failing notes that a future is about to end with err.
func (k *keeper) Failing(cell *waiting.Cell, err error) {
	if !isOthers(err) {
		k.proc.leaks.failing(failedFuture{cell, &k.ledger, k.name, err, false})
	}
}

func (k *keeper) MayHaveVerdict() bool { return k.ledger.NeedsLook() }

// Verdict takes the error that the program is to be told.
func (k *keeper) Verdict(ctx context.Context) error { return (*Comm)(k).verdict(ctx) }

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

// reported returns the error that has ended the scope's context, for a Wait on c in ctx. It
// returns nil if the program was told of it. If c does not have the error, the program may be
// about to repair the communicator that has it.
func (s *scope) reported(ctx context.Context, c *Comm) error {
	defer s.told.Store(true)
	switch {
	case c.ledger.DerivedFrom(&s.comm.ledger):
		if err := c.verdict(s.outer); err != nil { // the oldest, which may be another
			return err
		}
	case !s.comm.isBroken() || !s.comm.knows():
		if wait, err := s.comm.look(ledger.Peek); wait != nil || err != nil {
			c.proc.feed(c.ledger.GiveUp) // the Wait may be for the barrier of a TryAll
		}
		if err := s.comm.verdict(s.outer); err != nil {
			return err
		}
	}
	if c != s.comm && s.isRevoked() {
		s.comm.proc.feed(s.comm.ledger.KnowRevoked)
		return fmt.Errorf("in a Try or Guard of %s: %w", s.comm.name, ErrRevoked)
	}
	return s.missed(ctx)
}

// isRevoked says whether the scope's communicator is revoked, and the program was not told.
func (s *scope) isRevoked() bool {
	s.comm.proc.mu.Lock()
	defer s.comm.proc.mu.Unlock()
	return s.comm.ledger.RevokedUntold()
}

// missed returns the error that has ended the scope's context, if another goroutine of the
// rank was told of it and this one, which waits in ctx, is not the scope's own goroutine. The
// scope's own goroutine may have handled the error; this one has not, and what it waits for
// may never come.
func (s *scope) missed(ctx context.Context) error {
	if v := s.heard(); v != nil && !s.isOnStack(ctx) {
		return v
	}
	return nil
}

// scopeRunName is the name of the method that calls the function of a scope. callsOf counts
// it on the stack.
const scopeRunName = ownPackage + "(*scope).run"

// isOnStack says whether this goroutine, which waits in ctx, is the scope's own. The stack of
// the scope's own goroutine has the calls of the scope and of all scopes inside it; the stack
// of another goroutine has only the calls of scopes that it has opened itself.
func (s *scope) isOnStack(ctx context.Context) bool {
	calls := 1
	for inner := scopeOf(ctx); inner != nil && inner != s; inner = scopeOf(inner.outer) {
		calls++
	}
	return callsOf(scopeRunName) >= calls
}

// heard returns the error that has ended the scope's context, if the program was told of it
// and no Try has returned it.
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
