package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// keeper is the Comm as its futures see it: what their Waits report, and how long
// they listen to a context.
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
		ended = k.listen(ctx).Done()
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
func (k *keeper) Look() { k.t.Look() }

func (k *keeper) Unpark(place *waiting.Place) { k.proc.leave(!place.Spare) }

// listen returns the context whose end ends a Wait. That of a Try or Guard on
// this communicator, or on one it is derived from, need not be listened to: what
// ends it ends the operation as well.
func (k *keeper) listen(ctx context.Context) context.Context {
	if missed(ctx) != nil {
		return ctx
	}
	ctx = patient(ctx)
	for {
		s, ok := ctx.(*scope)
		if !ok || !k.ledger.DerivedFrom(&s.comm.ledger) {
			return ctx
		}
		ctx = patient(s.outer)
	}
}

// missed returns the error that has ended ctx, where another goroutine of the rank was told
// it, and this one is none that Try or Guard has called: what it waits for may never come,
// and it has not handled the error, as Try's goroutine may have done.
func missed(ctx context.Context) error {
	if s := interrupted(ctx); s != nil {
		if v := s.heard(); v != nil && !calledBy(scopeRunName) {
			return v
		}
	}
	return nil
}

// Ended says why a Wait whose context ended is over: because of an error of the
// communicator that the context's Try is on, or for the context's own cause. It
// is nil if the error has been reported and the Wait goes on.
func (k *keeper) Ended(ctx context.Context) error {
	if ctx.Err() == nil { // no message will ever move
		return (*Comm)(k).verdict(ctx)
	}
	if s := interrupted(ctx); s != nil {
		if !k.ledger.DerivedFrom(&s.comm.ledger) {
			k.proc.feed(k.ledger.GiveUp) // of a TryAll that this is the barrier of
		}
		if err := s.comm.verdict(s.outer); err != nil {
			return err
		}
		if err := missed(ctx); err != nil {
			return err
		}
	}
	if ctx = patient(ctx); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (k *keeper) Troubled() bool { return k.ledger.Troubled() }

// Verdict takes what is to be told, but not in a reduction's function: that is no place
// to be told anything.
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
