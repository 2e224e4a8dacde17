package mpicx

import (
	"context"
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

// listen returns the context whose end ends a Wait, and the scope whose error has ended that;
// nil: none has so far. The context of a scope on this communicator, or on one that it is
// derived from, is left out: the error that ends it ends the operation as well. So is one
// whose error the program was told, unless this goroutine missed it.
func (k *keeper) listen(ctx context.Context) (context.Context, *scope) {
	for in := ctx; ; {
		if s := interrupted(ctx); s != nil {
			if !k.isOf(s) && !s.told.Load() || s.missed(in) != nil {
				return ctx, s
			}
			ctx = s.around(ctx)
		} else if s, ok := ctx.(*scope); ok && k.isOf(s) {
			ctx = s.outer
		} else {
			return ctx, nil
		}
	}
}

// isOf says whether the errors that the scope is told are errors of the communicator.
func (k *keeper) isOf(s *scope) bool { return k.ledger.DerivedFrom(&s.comm.ledger) }

// Ended says why a Wait whose context ended is over: because of an error of the
// communicator that the context's Try is on, or for the context's own cause. It
// is nil if the program was told the error already. Then the Wait continues.
func (k *keeper) Ended(ctx context.Context) error {
	if ctx.Err() == nil { // no message will ever move
		return (*Comm)(k).verdict(ctx)
	}
	for s := interrupted(ctx); s != nil; _, s = k.listen(ctx) { // what is reported, listen passes over
		if !k.isOf(s) {
			k.proc.feed(k.ledger.GiveUp) // of a TryAll that this is the barrier of
		}
		if err := s.reported(ctx, !k.isOf(s)); err != nil {
			return err
		}
	}
	if ctx, _ = k.listen(ctx); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
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

// reported returns the error that has ended the scope's context, for a Wait in ctx: nil, if
// the program was told. Foreign says that the Wait is on a communicator that does not have
// the error: the program may be about to repair the one that has.
func (s *scope) reported(ctx context.Context, foreign bool) error {
	defer s.told.Store(true)
	if !foreign || !s.comm.isBroken() || !s.comm.knows() {
		if err := s.comm.verdict(s.outer); err != nil {
			return err
		}
	}
	return s.missed(ctx)
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
