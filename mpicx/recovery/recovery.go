package recovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx"
)

// Run calls fn at all ranks of comm until it has succeeded at all of them in one attempt. It is
// collective, and returns nil at all ranks or an error at all ranks. After an error of a rank
// the next attempt is on the same communicator. After the loss of a rank it is on the
// communicator that Replace or Shrink makes, if one of these options is given.
//
// Run gives up after MaxAttempts, or when a rank has returned [Attempt.GiveUp]. Then all ranks
// return an error that wraps the last Cause. The package comment says what else ends Run.
//
// Run sets the error handler of comm to ErrorsPropagate.
func Run(ctx context.Context, comm *mpicx.Comm, fn func(context.Context, *Attempt) error, opts ...Option) error {
	o, err := newOptions(opts)
	switch {
	case err != nil:
		return err
	case ctx == nil:
		return wrong(mpicx.ClassOther, "nil context, expected one that says how long to try")
	case comm == nil:
		return wrong(mpicx.ClassComm, "nil communicator, expected one to recover")
	case fn == nil:
		return wrong(mpicx.ClassOther, "nil function, expected one to call")
	}
	comm.SetErrhandler(mpicx.ErrorsPropagate)
	for r := newRun(comm, fn, o); ; {
		err := r.attempt(ctx)
		if err == nil {
			err = r.close(ctx)
		}
		switch {
		case err == nil && r.over:
			return fmt.Errorf("recovery: given up after %d attempts: %w", r.tried, r.causes[len(r.causes)-1])
		case err == nil:
			return nil
		case ended(ctx):
			return context.Cause(ctx)
		case isBroken(err, r.comm):
			comm, failed := o.repair(ctx, r.comm, err)
			if failed != nil {
				return failed
			}
			r.move(comm)
		case !isOf(err, r.comm):
			return err
		}
		r.failed(err)
	}
}

// attempt calls fn once, or finds that Run is over. It returns nil at all ranks or at none.
func (r *run) attempt(ctx context.Context) (err error) {
	// Who leaves by anything but an error that all have is not there for the others any more:
	// Guard tells them.
	_ = r.comm.Guard(ctx, func(guarded context.Context) error {
		// Each is a step of its own. Otherwise fn could fail at one rank before it is called at
		// another.
		if err = r.together(guarded, r.meet); err == nil && !r.over {
			r.tried++
			if r.storing && !r.opened {
				err = r.together(guarded, r.open)
			}
			if err == nil {
				r.begun++
				err = r.together(guarded, func(ctx context.Context) error { return r.fn(ctx, r.next()) })
			}
		}
		if err == nil || !ended(ctx) && isCommon(err) {
			return nil
		}
		return err
	})
	return err
}

// together is TryAll without the gap that TryAll leaves: if a rank dies, or its context
// ends, while the votes are counted, TryAll may return nil at some ranks only. What Agree
// decides is uniform among the survivors, whatever dies. With the black channel nobody does,
// and a TryAll without a deadline is uniform.
//
// The Wait for Agree would report an error of a rank that has left already in place of
// the decision (P7). TryAll leaves that to the next operation. So nobody leaves before all
// have been in a second one.
func (r *run) together(ctx context.Context, fn func(context.Context) error) error {
	if err := r.comm.TryAll(ctx, fn); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // nobody is kept waiting here: all come, or have failed
	agreed := r.comm.Agree(1)
	err := agreed.Wait(ctx)
	if isBroken(err, r.comm) {
		err = agreed.Wait(ctx) // the decision itself, or an error of an outer level
	}
	decided := err == nil
	if !decided && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	err = r.comm.TryAll(ctx, func(context.Context) error { return nil })
	if decided && isBroken(err, r.comm) {
		return nil // what was lost after the decision is of the next operation
	}
	return err
}

// repair returns what is to take the place of a broken communicator. Where nothing can, it
// returns cause.
func (o *options) repair(ctx context.Context, comm *mpicx.Comm, cause error) (next *mpicx.Comm, err error) {
	_ = comm.Err() // an operation on a derived communicator may have told cause: now comm itself has
	err = errors.ErrUnsupported
	if o.replace {
		next, err = comm.Replace().Get(ctx)
	}
	if o.shrink || o.elseShrink && cannotReplace(err) {
		next, err = comm.Shrink().Get(ctx)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, cause
	case cannotReplace(err):
		return nil, fmt.Errorf("recovery: %w, after %w", err, cause)
	}
	return next, err
}

// cannotReplace says whether err is that there are too few spares, or that Replace is not for
// this communicator. An error of a communicator is neither, even if an *MPIError of this rank has
// caused it: no other rank would see that.
func cannotReplace(err error) bool {
	_, short := errors.AsType[*mpicx.SpareError](err)
	_, never := errors.AsType[*mpicx.MPIError](err)
	return short || never && !isCommon(err)
}

// ended says whether ctx has ended by itself. The context of a Try that an error of another rank
// has ended has a cause of its own, which is context.Canceled.
func ended(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return cause != nil && (cause == ctx.Err() || !errors.Is(cause, context.Canceled))
}

// isOf says whether err is an error that all ranks of comm have because of comm itself. If
// not, it is one of a communicator that comm is derived from, or of this rank.
func isOf(err error, comm *mpicx.Comm) bool {
	if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
		return p.Of(comm)
	}
	return isBroken(err, comm)
}

func isPropagated(err error) bool {
	_, ok := errors.AsType[*mpicx.PropagatedError](err)
	return ok
}

// isBroken says whether err is that comm itself is broken.
func isBroken(err error, comm *mpicx.Comm) bool {
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
		return c.Of(comm)
	}
	return errors.Is(err, mpicx.ErrRevoked) && comm.Revoked()
}

// isCommon says whether all ranks have err.
func isCommon(err error) bool {
	_, corrupted := errors.AsType[*mpicx.CommCorruptedError](err)
	return corrupted || isPropagated(err) || errors.Is(err, mpicx.ErrRevoked)
}
