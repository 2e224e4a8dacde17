package mpicxtest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A body is a piece of work in which ranks die. It throws what its operations end with.
type body func(context.Context, *mpicx.Comm)

var bodies = map[string]body{
	"basic":      basic,
	"signalling": signalling,
	"any source": anySource,
}

func basic(ctx context.Context, comm *mpicx.Comm) {
	comm.Barrier().MustWait(ctx)
	mpicx.Allreduce(comm, []int{1}, []int{0}, mpicx.Sum).MustWait(ctx)
	n := comm.Size()
	recv := mpicx.Recv(comm, []int{0}, (comm.Rank()+n-1)%n, 5)
	mpicx.Ssend(comm, []int{comm.Rank()}, (comm.Rank()+1)%n, 5).MustWait(ctx)
	recv.MustWait(ctx)
}

func signalling(ctx context.Context, comm *mpicx.Comm) {
	for range 2 {
		signal(ctx, comm)
	}
	comm.Barrier().MustWait(ctx)
}

// signal has the last rank signal an error, of which all are told.
func signal(ctx context.Context, comm *mpicx.Comm) {
	err := comm.Try(ctx, func(ctx context.Context) error {
		if comm.Rank() == comm.Size()-1 {
			return errors.New("signalled")
		}
		return comm.Barrier().Wait(ctx)
	})
	if !isPropagated(err) {
		mpicx.Throw(err)
	}
}

func anySource(ctx context.Context, comm *mpicx.Comm) {
	if comm.Rank() != 0 {
		mpicx.Send(comm, []int{1}, 0, 3).MustWait(ctx)
		mpicx.Recv(comm, []int{0}, 0, 4).MustWait(ctx)
		return
	}
	for range comm.Size() - 1 {
		from := mpicx.Probe[int](comm, mpicx.AnySource, 3).MustGet(ctx).Source
		mpicx.Recv(comm, []int{0}, from, 3).MustWait(ctx)
		mpicx.Send(comm, []int{1}, from, 4).MustWait(ctx)
	}
}

// caught returns the error that a function throws.
func caught(fn func()) (err error) {
	defer future.Catch(&err)
	fn()
	return nil
}

// An outcome is what a survivor came to.
type outcome struct {
	comm string            // on which all was done
	told map[string]string // what it knows of communicators: which ranks were dead, how many are left
}

func (o *outcome) note(what string, of *mpicx.Comm, value any) {
	o.told[fmt.Sprint(what, " of ", of)] = fmt.Sprint(value)
}

// shrink returns the communicator of the survivors.
func (o *outcome) shrink(ctx context.Context, comm *mpicx.Comm) (*mpicx.Comm, error) {
	small, err := comm.Shrink().Get(ctx)
	if err != nil {
		return nil, fmt.Errorf("shrink: %w (%T)", err, err)
	}
	o.note("size", small, small.Size())
	return small, nil
}

// unlessAll returns nil if all living ranks are done, or else the communicator of the survivors.
func (o *outcome) unlessAll(ctx context.Context, comm *mpicx.Comm, done bool) (*mpicx.Comm, error) {
	flag, err := comm.Agree(btoi(done)).Get(ctx)
	if err == nil && flag == 1 {
		o.comm = comm.String()
		return nil, nil
	}
	if _, dead := errors.AsType[*mpicx.ProcFailedError](err); err != nil && !dead {
		return nil, fmt.Errorf("agree: %w (%T)", err, err)
	}
	return o.shrink(ctx, comm)
}

type program func(ctx context.Context, world *mpicx.Comm, o *outcome) error

// propagating repeats a body until it succeeds at this rank, each time on the survivors.
func propagating(do body) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		for comm := world; ; {
			err := comm.Guard(ctx, func(ctx context.Context) error {
				do(ctx, comm)
				return nil
			})
			if err == nil {
				o.comm = comm.String()
				return nil
			}
			if !expected(err) {
				return fmt.Errorf("body: %w (%T)", err, err)
			}
			// It is corrupted, by Guard at least.
			told := comm.Barrier().Wait(ctx)
			corrupted, ok := errors.AsType[*mpicx.CommCorruptedError](told)
			if !ok {
				return fmt.Errorf("Barrier: %v, after Guard left with %w (%T)", told, err, err)
			}
			o.note("dead", comm, corrupted.Dead)
			if comm, err = o.shrink(ctx, comm); err != nil {
				return err
			}
		}
	}
}

// returning repeats a body until it has succeeded at all ranks.
func returning(do body) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		for comm := world; comm != nil; {
			err := caught(func() { do(ctx, comm) })
			if err != nil && !expected(err) {
				return fmt.Errorf("body: %w (%T)", err, err)
			}
			done := err == nil
			if !done {
				err = comm.Revoke(ctx)
			}
			if err == nil {
				comm, err = o.unlessAll(ctx, comm, done)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func expected(err error) bool {
	_, dead := errors.AsType[*mpicx.ProcFailedError](err)
	return isCorrupted(err) || dead || errors.Is(err, mpicx.ErrRevoked) || errors.Is(err, mpicx.ErrProcFailedPending)
}

func isCorrupted(err error) bool { return errors.As(err, new(*mpicx.CommCorruptedError)) }

func isPropagated(err error) bool { return errors.As(err, new(*mpicx.PropagatedError)) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
