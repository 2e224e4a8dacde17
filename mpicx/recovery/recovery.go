package recovery

import (
	"cmp"
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
// Run gives up after MaxAttempts, when a rank has returned [Attempt.GiveUp], or when a rank has
// failed by an error that no other attempt would mend: a *checkpoint.LostError, or a missing
// permission (fs.ErrPermission). Then all ranks return an error that wraps the last Cause. The
// package comment says what else ends Run.
//
// A *mpicx.StopError that fn returns, which all ranks have (see [Attempt.Stopping]), is no failure.
// All ranks return it from Run, after the store is closed.
//
// Run sets the error handler of comm to ErrorsPropagate.
func Run(ctx context.Context, comm *mpicx.Comm, fn func(context.Context, *Attempt) error, opts ...Option) error {
	o, err := newOptions(opts)
	switch {
	case err != nil:
		return err
	case ctx == nil:
		return wrong(mpicx.ClassOther, "nil context, expected one that limits the attempts")
	case comm == nil:
		return wrong(mpicx.ClassComm, "nil communicator, expected one to recover")
	case fn == nil:
		return wrong(mpicx.ClassOther, "nil function, expected one to call")
	}
	comm.SetErrhandler(mpicx.ErrorsPropagate)
	for r := newRun(comm, fn, o); ; {
		err := r.attempt(ctx)
		var stop error
		if isStop(err) {
			stop, err = err, nil
		}
		if err == nil {
			err = r.close(ctx)
		}
		switch {
		case err == nil && r.over:
			return r.giveUp()
		case err == nil:
			return stop
		case isBroken(err, r.comm):
			comm, failed := o.repair(ctx, r.comm, err)
			if failed != nil {
				return failed
			}
			r.comm, r.placed, r.opened = comm, false, false
		case !isOf(err, r.comm):
			return err
		}
		r.causes = append(r.causes, err)
		r.note(err)
	}
}

// attempt calls fn once, or finds that Run is over. It returns nil at all ranks or at none.
func (r *run) attempt(ctx context.Context) (err error) {
	// A rank that leaves with anything but an error that all ranks have is lost for the others.
	// Guard tells them.
	_ = r.comm.Guard(ctx, func(guarded context.Context) error {
		over := ctx.Err() != nil // if by an error of an outer level, steps return that
		err = r.steps(guarded)
		if err == nil || isStop(err) || isCommon(err) && !(over && isOf(err, r.comm)) {
			return nil
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	})
	return err
}

// steps are the steps of an attempt. They are separate: in a single one, fn could fail at one rank
// before it is called at another.
func (r *run) steps(ctx context.Context) error {
	if err := r.together(ctx, r.meet); err != nil || r.over {
		return err
	}
	r.tried++
	if r.storing && !r.opened {
		if err := r.together(ctx, r.open); err != nil {
			return err
		}
	}
	r.begun++
	return r.together(ctx, r.call)
}

// call calls fn. It notes whether this rank gives up, because an error of another rank may come
// first.
func (r *run) call(ctx context.Context) error {
	err := r.fn(ctx, r.next())
	r.note(err)
	return err
}

// together is TryAll that is uniform despite deaths. If a rank dies, or its context ends, while the
// votes are counted, TryAll may return nil at some ranks only. The decision of Agree is the same at
// all survivors, no matter which ranks die. With the black channel no rank dies, and a TryAll
// without a deadline is uniform, so Agree is left out. A Wait for Agree would report an error of a
// rank that has already left instead of the decision (P7). TryAll leaves such an error to the next
// operation. Therefore no rank leaves before all have been in a second TryAll.
func (r *run) together(ctx context.Context, fn func(context.Context) error) error {
	stop := r.comm.TryAll(ctx, fn)
	if stop != nil && !isStop(stop) {
		return stop
	}
	ctx = context.WithoutCancel(ctx) // this does not block for long: all ranks come here, or have failed
	decided := mpicx.Backend == "ulfm"
	if decided {
		agreed := r.comm.Agree(1)
		err := agreed.Wait(ctx)
		if isBroken(err, r.comm) {
			err = agreed.Wait(ctx) // returns the decision, or an error of an outer level
		}
		if err != nil {
			return err
		}
	}
	err := r.comm.TryAll(ctx, func(context.Context) error { return nil })
	if decided && isBroken(err, r.comm) {
		err = nil // the next operation reports ranks that were lost after the decision
	}
	return cmp.Or(err, stop)
}

// repair returns the communicator that replaces a broken one. If none can, it returns cause.
func (o *options) repair(ctx context.Context, comm *mpicx.Comm, cause error) (next *mpicx.Comm, err error) {
	_ = comm.Err() // cause may be from an operation on a derived communicator; now comm itself has told it
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	err = errors.ErrUnsupported
	if o.replace {
		next, err = comm.Replace().Get(ctx)
	}
	if o.shrink || o.elseShrink && cannotReplace(err) {
		next, err = comm.Shrink().Get(ctx)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported): // a death's text says what it needs
		return nil, cause
	case cannotReplace(err):
		return nil, fmt.Errorf("recovery: %w, after %w", err, cause)
	}
	return next, err
}

// cannotReplace says whether err means that there are too few spares, or that this communicator
// can't be replaced. An error of a communicator means neither, even if an *MPIError of this rank
// has caused it: no other rank would see that.
func cannotReplace(err error) bool {
	_, short := errors.AsType[*mpicx.SpareError](err)
	_, never := errors.AsType[*mpicx.MPIError](err)
	return short || never && !isCommon(err)
}

// isOf says whether err is an error of comm itself, which all its ranks have. Other errors are of a
// communicator that comm is derived from, or of this rank alone.
func isOf(err error, comm *mpicx.Comm) bool {
	if p, ok := errors.AsType[*mpicx.PropagatedError](err); ok {
		return p.Of(comm)
	}
	return isBroken(err, comm)
}

// isBroken says whether err means that comm itself is broken.
func isBroken(err error, comm *mpicx.Comm) bool {
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
		return c.Of(comm)
	}
	return errors.Is(err, mpicx.ErrRevoked) && comm.Revoked()
}

// isStop says whether err says that all ranks stop.
func isStop(err error) bool {
	_, stop := errors.AsType[*mpicx.StopError](err)
	return stop && !isCommon(err)
}

// isCommon says whether all ranks have err.
func isCommon(err error) bool {
	_, corrupted := errors.AsType[*mpicx.CommCorruptedError](err)
	_, propagated := errors.AsType[*mpicx.PropagatedError](err)
	return corrupted || propagated || errors.Is(err, mpicx.ErrRevoked)
}
