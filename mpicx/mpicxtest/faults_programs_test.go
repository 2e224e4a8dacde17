package mpicxtest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Pieces of work that ranks die in.
var bodies = map[string]func(context.Context, *mpicx.Comm) error{
	"basic":      basic,
	"deriving":   deriving,
	"signalling": signalling,
	"any source": anySource,
}

func basic(ctx context.Context, comm *mpicx.Comm) error {
	if err := comm.Barrier().Wait(ctx); err != nil {
		return err
	}
	if err := mpicx.Allreduce(comm, []int{1}, []int{0}, mpicx.Sum).Wait(ctx); err != nil {
		return err
	}
	n := comm.Size()
	recv := mpicx.Recv(comm, []int{0}, (comm.Rank()+n-1)%n, 5)
	if err := mpicx.Ssend(comm, []int{comm.Rank()}, (comm.Rank()+1)%n, 5).Wait(ctx); err != nil {
		return err
	}
	return recv.Wait(ctx)
}

// deriving revokes the communicators that it has made if it fails.
func deriving(ctx context.Context, comm *mpicx.Comm) (err error) {
	dup, err := have(ctx, comm, comm.Dup())
	if err != nil {
		return err
	}
	defer revokeIf(ctx, &err, dup)
	half, err := have(ctx, dup, dup.Split(comm.Rank()%2, 0))
	if err != nil {
		return err
	}
	defer revokeIf(ctx, &err, half)
	if err := mpicx.Allreduce(half, []int{1}, []int{0}, mpicx.Sum).Wait(ctx); err != nil {
		return err
	}
	return dup.Barrier().Wait(ctx)
}

// agreeing, in a context, has a new communicator used only if all have it: under
// ErrorsReturn a Wait for it may report that its parent was revoked meanwhile.
type agreeing struct{}

func have(ctx context.Context, parent *mpicx.Comm, f *future.Future[*mpicx.Comm]) (*mpicx.Comm, error) {
	comm, err := f.Get(ctx)
	if ctx.Value(agreeing{}) == nil {
		return comm, err
	}
	flag := 1
	if err != nil {
		flag = 0
	}
	all, agreeErr := parent.Agree(flag).Get(ctx)
	if all == 0 && err == nil {
		err = mpicx.ErrRevoked // or agreeErr
	}
	return comm, errors.Join(err, agreeErr)
}

func revokeIf(ctx context.Context, err *error, comm *mpicx.Comm) {
	if *err != nil {
		_ = comm.Revoke(ctx)
	}
}

func signalling(ctx context.Context, comm *mpicx.Comm) error {
	for range 2 {
		err := comm.Try(ctx, func(ctx context.Context) error {
			if comm.Rank() == comm.Size()-1 {
				return errors.New("signalled")
			}
			return comm.Barrier().Wait(ctx)
		})
		if _, ok := errors.AsType[*mpicx.PropagatedError](err); !ok {
			return err
		}
	}
	return comm.Barrier().Wait(ctx)
}

func anySource(ctx context.Context, comm *mpicx.Comm) error {
	if comm.Rank() != 0 {
		if err := mpicx.Send(comm, []int{1}, 0, 3).Wait(ctx); err != nil {
			return err
		}
		return mpicx.Recv(comm, []int{0}, 0, 4).Wait(ctx)
	}
	for range comm.Size() - 1 {
		s, err := mpicx.Probe[int](comm, mpicx.AnySource, 3).Get(ctx)
		if err != nil {
			return err
		}
		if err := mpicx.Recv(comm, []int{0}, s.Source, 3).Wait(ctx); err != nil {
			return err
		}
		if err := mpicx.Send(comm, []int{1}, s.Source, 4).Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// An outcome is what a survivor came to, and told by names of communicators: who
// was dead when they were corrupted, and how large they are.
type outcome struct {
	comm string // on which all was done
	dead map[string]string
	size map[string]int
}

type program func(ctx context.Context, world *mpicx.Comm, o *outcome) error

// propagating repeats body until it succeeds at this rank, each time on the survivors.
func propagating(body func(context.Context, *mpicx.Comm) error) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		for comm := world; ; {
			err := comm.Guard(ctx, func(ctx context.Context) error { return body(ctx, comm) })
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
			o.dead[comm.String()] = fmt.Sprint(corrupted.Dead)
			if comm, err = comm.Shrink().Get(ctx); err != nil {
				return fmt.Errorf("shrink: %w (%T)", err, err)
			}
			o.size[comm.String()] = comm.Size()
		}
	}
}

// returning does body until all have done it.
func returning(body func(context.Context, *mpicx.Comm) error) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		ctx = context.WithValue(ctx, agreeing{}, true)
		for comm := world; ; {
			flag := 1
			if err := body(ctx, comm); err != nil {
				if !expected(err) {
					return fmt.Errorf("body: %w (%T)", err, err)
				}
				flag = 0
				if err := comm.Revoke(ctx); err != nil {
					return err
				}
			}
			flag, err := comm.Agree(flag).Get(ctx)
			if err == nil && flag == 1 {
				o.comm = comm.String()
				return nil
			}
			if _, dead := errors.AsType[*mpicx.ProcFailedError](err); err != nil && !dead {
				return fmt.Errorf("agree: %w (%T)", err, err)
			}
			if comm, err = comm.Shrink().Get(ctx); err != nil {
				return fmt.Errorf("shrink: %w (%T)", err, err)
			}
			o.size[comm.String()] = comm.Size()
		}
	}
}

func expected(err error) bool {
	_, corrupted := errors.AsType[*mpicx.CommCorruptedError](err)
	_, dead := errors.AsType[*mpicx.ProcFailedError](err)
	return corrupted || dead || errors.Is(err, mpicx.ErrRevoked) || errors.Is(err, mpicx.ErrProcFailedPending)
}
