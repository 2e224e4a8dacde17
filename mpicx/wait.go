package mpicx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// keeper is the keeper of a Comm's futures. It decides which errors and which contexts end
// Waits on them.
type keeper struct {
	*comm
	call string // the operation's name, if the transport can't find it by its future; else ""
	// mode says which errors Waits return. A repair's Waits (ledger.TakeToRepair) return their own
	// results on a broken communicator (C4). An error that ends other Waits does not end these, so
	// the rank attends as long as they last.
	mode ledger.Mode
	// meeting says that this is a TryAll's barrier. If a scope's error ends a Wait for it, the rank
	// gives up.
	meeting bool
}

var _ waiting.Keeper = (*keeper)(nil)

// Park begins a wait on the communicator. The rank attends from here to Unpark (P2). The first
// goroutine that waits gets the rank's own Place. A scope that closes nudges it, unless the
// goroutine sleeps in a driver. Nobody nudges the Places of other goroutines. The channel of a
// Place that is not nudged has to close for every error that ends the wait.
//
// A scope's context makes the channel of its Done when it is asked for, and few need it. So listen,
// which skips such contexts, comes before Done.
func (k *keeper) Park(ctx context.Context) (*waiting.Place, <-chan struct{}) {
	place := k.proc.place
	k.notInReduction("waits", "for an operation")
	if k.proc.still.Load() {
		k.proc.still.Store(false)
	}
	if k.mode == ledger.TakeToRepair {
		k.proc.addWaiters(1)
	}
	first := k.proc.enter(&k.ledger)
	if !first {
		place = k.proc.newPlace()
		place.Spare = true
	}
	_, inScope := ctx.(*scope)
	if nudged := first && place.Drive == nil; nudged && inScope || ctx.Done() != nil && (nudged || ctx.Err() != nil) {
		ctx, _ = k.listen(ctx, nudged)
	}
	return place, ctx.Done()
}

// Yield lets other ranks run or, if they are other processes, messages of theirs come.
func (k *keeper) Yield(cell *waiting.Cell) {
	p := &k.proc.prompt
	first := p.isLatest(cell)
	if d := k.proc.driver; d != nil {
		d.Glance()
	} else if !first || !p.likely.Load() { // else the receive has yielded
		k.proc.yielder.Yield()
	}
	if first {
		p.learn(cell.IsDone())
	}
}

// Look ends operations that need ranks whose programs have returned.
func (k *keeper) Look() {
	k.proc.partAll()
	k.t.Look()
}

// Unpark ends what Park began. If the rank waits nowhere else, it attends no longer: it joins no
// round until its program waits or looks again (P2).
func (k *keeper) Unpark(place *waiting.Place) {
	if k.proc.leave(!place.Spare); k.mode == ledger.TakeToRepair {
		k.proc.addWaiters(-1)
	}
}

// listen returns the context whose end ends a Wait in ctx. If it has ended, listen also
// returns the scope whose error has ended it, or nil if no error has.
//
// nudged says that an error wakes the goroutine in any case. listen then skips the contexts of
// running scopes on this communicator and on its ancestors, because the error that ends such a
// context also ends the operation.
func (k *keeper) listen(in context.Context, nudged bool) (context.Context, *scope) {
	ctx := in
	for {
		if ctx.Err() == nil {
			if s, ok := ctx.(*scope); ok && nudged && k.isOf(s) && !k.isApart(s) {
				ctx = s.outer
				continue
			}
			if in.Err() == nil {
				return ctx, nil
			}
		} else if s := interrupted(ctx); s != nil {
			if k.endedBy(s) && !s.inVain() {
				return ctx, s
			}
			ctx = s.around(ctx)
			continue
		}
		ctx = within(in, ctx, func(s *scope) bool { return !nudged || k.endedBy(s) || s.inVain() })
		return ctx, interrupted(ctx)
	}
}

// endedBy says whether an error that ends the scope's context ends Waits on this communicator.
func (k *keeper) endedBy(s *scope) bool {
	return locked(&s.comm.proc.mu, func() bool {
		return s.entry.Closed() || !k.isOf(s) || k.isApart(s) && s.comm.ledger.IsRevoked()
	})
}

// isOf says whether errors of the scope's communicator are errors of this one.
func (k *keeper) isOf(s *scope) bool { return k.ledger.DerivedFrom(&s.comm.ledger) }

// isApart says whether this communicator works even if the scope's is revoked.
func (k *keeper) isApart(s *scope) bool { return s.comm != k.comm && !s.comm.propagates() }

// Ended returns the error of a Wait whose context has ended: the error that has ended a scope, or
// the context's own cause. It returns nil if the error does not concern this communicator; the Wait
// then continues.
func (k *keeper) Ended(ctx context.Context) error {
	if ctx.Err() == nil { // the transport has failed
		return k.verdict(ctx)
	}
	for {
		in, s := k.listen(ctx, false)
		switch {
		case s == nil && in.Err() != nil:
			return k.proc.endOf(ctx, context.Cause(in))
		case s == nil:
			return nil
		}
		if k.meeting { // ranks that have voted yes do not join the round that this one waits for
			k.proc.feed(k.ledger.GiveUp)
		}
		if err := s.failure(ctx); err != nil {
			k.know(err) // a repair that begins next belongs with those of ranks that know (see knows)
			return err
		}
		if s.isOver() {
			return k.proc.endOf(ctx, context.Canceled)
		}
	}
}

// Told notes that the program was told the operation's error.
func (k *keeper) Told(cell *waiting.Cell, _ error) { k.proc.leaks.Told(cell) }

// Failing notes that a future is about to end with err.
func (k *keeper) Failing(cell *waiting.Cell, err error) {
	if !isOthers(err) {
		k.proc.leaks.Failing(observe.FailedFuture{Cell: cell, Comm: &k.ledger, Name: k.name, Err: err})
	}
}

// isOthers says whether the cause of err lies outside the operation that ends with it: in an error
// of all ranks, a death, the end of another rank's program, a revocation, or a cancellation. An
// error that is neither an *MPIError nor a panic also counts as such. A send to a rank that has
// returned does not: nobody receives its message.
func isOthers(err error) bool {
	m, ok := errors.AsType[*MPIError](err)
	return !ok && !hasType[*future.Panicked](err) || waiting.IsCommon(err) || hasType[*transport.LeftError](err) && !strings.Contains(strings.ToLower(m.Op), "send") ||
		hasType[*ProcFailedError](err) || errors.Is(err, ErrRevoked) || errors.Is(err, transport.ErrDied) || errors.Is(err, transport.ErrCancelled) ||
		errors.Is(err, errLeftBehind)
}

// MayHaveVerdict is one atomic load, and all that a Wait does about errors while there is none.
func (k *keeper) MayHaveVerdict() bool { return k.ledger.NeedsLook() }

// Verdict takes the error that the program is to be told.
func (k *keeper) Verdict(ctx context.Context, end func() error) error {
	return k.verdictFor(ctx, k.mode, end)
}

// IsOver says whether err is a propagated error that a scope of this rank has dealt with.
func (k *keeper) IsOver(err error) bool {
	return locked(&k.proc.mu, func() bool { return k.isOver(func() error { return err }) })
}

// TryVerdict is Verdict for Test. If an error is under way and this rank would have to wait for its
// verdict, Test says "not done", and the rank joins the round: a program that polls must not keep
// the others waiting (P1). docs/rules.md says why the answer can't be "done".
func (k *keeper) TryVerdict(end func() error) (bool, error) {
	k.notInReduction("waits", "for an operation")
	k.proc.exitIfDead()
	wait, err := k.lookIn(context.Background(), k.mode, end)
	if err == nil && wait != nil {
		k.proc.feed(func() { k.ledger.Answer(k.mode) })
	}
	return err != nil || wait == nil, err
}

// Watch has the rank attend while the program may be waiting for the channel of a future. The
// library can't see when it does, so the rank joins every round until Unwatch.
func (k *keeper) Watch() {
	k.notInReduction("waits", "for an operation")
	k.proc.addWaiters(1)
}

func (k *keeper) Unwatch() { k.proc.addWaiters(-1) }

// ErrCancelled is the error of a receive or probe that Cancel has cancelled (MPI_Test_cancelled).
// Test for it with errors.Is.
var ErrCancelled error = transport.ErrCancelled

// Cancel cancels a receive or probe that no message has matched yet (MPI_Cancel), and says
// whether it did. Then f ends with ErrCancelled, its buffer is free, and messages go to other
// receives. Otherwise f is matched or done, and ends as if Cancel had not been called. Other
// operations, such as sends, are never cancelled.
func Cancel[T any](f *future.Future[T]) bool {
	if f == nil {
		panic("mpicx: Cancel: nil future, expected the future of a receive or probe")
	}
	k, ok := waiting.Of(f).Kept().(interface{ cancel(*waiting.Cell) bool })
	return ok && k.cancel(waiting.Of(f))
}

// cancel cancels the receive or probe whose future has this cell. It first tells the operation,
// while that can't end, not to reuse its request.
func (k *keeper) cancel(cell *waiting.Cell) bool {
	var found *transport.Request
	k.t.EachPending(func(r *transport.Request) {
		if o, ok := r.Done.(cancellable); ok && o.cell() == cell {
			o.cancelling()
			found = r
		}
	})
	return found != nil && k.t.Cancel(found)
}

// A cancellable is a receive or probe of the program.
type cancellable interface {
	operation
	// cancelling says that the operation's request may be cancelled, even after its end, so it
	// must not be reused. It is called while the operation can't end.
	cancelling()
}

// If a context ends a Wait, the error names the operation. Futures know nothing of ranks, and
// operations keep no text for this, so the name comes from the transport's pending requests.

// An interruptedError is a context's cause, with the operation that was waited for.
type interruptedError struct {
	waitedFor string
	cause     error
}

func (e *interruptedError) Error() string { return fmt.Sprintf("mpicx: %s: %v", e.waitedFor, e.cause) }
func (e *interruptedError) Unwrap() error { return e.cause }

// Describe adds the names of the awaited operations to err if err is ctx's cause. Other errors name
// their operation themselves.
func (k *keeper) Describe(ctx context.Context, err error, waited ...*waiting.Cell) error {
	if !endedBy(ctx, err) {
		k.proc.leaks.Interrupted(waited, err)
		return err
	}
	var operations []observe.Operation
	for _, cell := range waited[:min(len(waited), observe.Most)] {
		if o, ok := operationOf(cell, observe.OperationOf); ok {
			operations = append(operations, o)
		}
	}
	return &interruptedError{observe.List(operations, "or", len(waited)-len(operations)), err}
}

// nameOf names what a goroutine waits for, in the same way at all ranks.
func nameOf(cells []*waiting.Cell) string {
	if len(cells) > 1 {
		return fmt.Sprintf("WaitAny of %d", len(cells))
	}
	o, _ := operationOf(cells[0], observe.SharedOperationOf)
	o.Until = ""
	return o.String()
}

// interrupted is Describe for an operation without a future, called name.
func (c *comm) interrupted(ctx context.Context, name string, err error) error {
	if !endedBy(ctx, err) {
		return err
	}
	return &interruptedError{c.unknown(name).String(), err}
}

// endedBy says whether err is the cause of ctx or, if a peer's error has ended the context of a
// Try, of the context around that Try.
func endedBy(ctx context.Context, err error) bool {
	if waiting.IsCommon(err) || hasType[*interruptedError](err) {
		return false
	}
	ctx = patient(ctx)
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// operationOf returns the operation that ends the future of a cell, as observe.OperationOf or
// observe.SharedOperationOf does. ok says whether the future is a communicator's.
func operationOf(cell *waiting.Cell, of func(*transport.Request, string) observe.Operation) (o observe.Operation, ok bool) {
	k, ok := cell.Kept().(*keeper)
	if !ok {
		return observe.Operation{Name: "Wait"}, false
	}
	if k.call == "" {
		k.t.EachPending(func(r *transport.Request) {
			if p := programsOf(r); o.Name == "" && p != nil && p.cell() == cell {
				o = of(r, k.name)
			}
		})
	}
	if o.Name == "" {
		o = k.unknown(cmp.Or(k.call, "Wait"))
	}
	return o, true
}

// unknown is an operation on c that the transport does not know: one of the error channel.
func (c *comm) unknown(name string) observe.Operation {
	return observe.Operation{Name: name, Comm: c.name, Until: c.channel.Waiting()}
}

// programsOf returns the program's operation that a request is for, or nil if it is none of the
// program's.
func programsOf(r *transport.Request) operation {
	done := any(r.Done)
	if x, ok := done.(*collective.Exchange); ok {
		done = x.Ender()
	}
	o, _ := done.(operation)
	return o
}
