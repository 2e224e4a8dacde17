package recovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/mpicx"
)

// Run calls fn at all ranks of comm until it has succeeded at all of them in one attempt. It
// is collective, and returns nil at all ranks or an error at all ranks. After an error of a
// rank the next attempt is on the same communicator; after the loss of one on what Replace or
// Shrink makes of it, if these options are given.
//
// Run gives up after MaxAttempts, or when a rank has returned [Attempt.GiveUp]: then all ranks
// return an error that wraps the last Cause. The package comment says what else ends it.
//
// Run sets the error handler of comm to ErrorsPropagate.
func Run(ctx context.Context, comm *mpicx.Comm, fn func(context.Context, *Attempt) error, opts ...Option) error {
	o, err := newOptions(opts)
	switch {
	case err != nil:
		return err
	case ctx == nil:
		return wrong(mpicx.ClassOther, "nil context, expected one that says how long to go on")
	case comm == nil:
		return wrong(mpicx.ClassComm, "nil communicator, expected one to recover")
	case fn == nil:
		return wrong(mpicx.ClassOther, "nil function, expected one to call")
	}
	comm.SetErrhandler(mpicx.ErrorsPropagate)
	for r := newRun(comm, fn, o); ; {
		err := r.attempt(ctx)
		switch {
		case err == nil && r.over:
			return fmt.Errorf("recovery: given up after %d attempts: %w", len(r.causes), r.causes[len(r.causes)-1])
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

// attempt calls fn once. It returns nil once this rank knows that all return nil.
func (r *run) attempt(ctx context.Context) (err error) {
	// Who leaves by anything but an error that all have is not there for the others any more:
	// Guard tells them.
	_ = r.comm.Guard(ctx, func(guarded context.Context) error {
		err = r.comm.TryAll(guarded, func(ctx context.Context) error {
			if err := r.meet(ctx); err != nil || r.over {
				return err
			}
			return r.call(ctx)
		})
		if err == nil {
			err = r.agree(context.WithoutCancel(guarded))
		}
		if err == nil || !ended(ctx) && isCommon(err) {
			return nil
		}
		return err
	})
	return err
}

// call is fn, with an error if an error of another rank has ended its context and it did
// not say so: that rank is in the next attempt.
func (r *run) call(ctx context.Context) error {
	err := r.fn(ctx, r.next())
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// agree closes the gap that TryAll leaves: it may return nil at some ranks only, if a rank has
// died, or its context has ended, while the votes were counted. Agree is uniform among the
// survivors whatever dies. With the black channel nobody does, and a TryAll without a deadline
// is uniform. All ranks are here or have failed, so there is not much to wait for.
func (r *run) agree(ctx context.Context) error {
	err := r.comm.Agree(1).Wait(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return r.comm.TryAll(ctx, func(context.Context) error { return nil })
	}
	return err
}

// repair returns what is to take the place of a broken communicator. Where nothing can, it
// returns cause.
func (o *options) repair(ctx context.Context, comm *mpicx.Comm, cause error) (next *mpicx.Comm, err error) {
	err = errors.ErrUnsupported
	if o.shrink {
		next, err = comm.Shrink().Get(ctx)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, cause
	}
	return next, err
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

// isBroken says whether err is that comm itself is broken.
func isBroken(err error, comm *mpicx.Comm) bool {
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
		return c.Of(comm)
	}
	return errors.Is(err, mpicx.ErrRevoked) && comm.Revoked()
}

// isCommon says whether all ranks have err.
func isCommon(err error) bool {
	var p *mpicx.PropagatedError
	var c *mpicx.CommCorruptedError
	return errors.As(err, &p) || errors.As(err, &c) || errors.Is(err, mpicx.ErrRevoked)
}
