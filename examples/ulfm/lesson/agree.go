package lesson

import (
	"context"
	"errors"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Flag is 1 for true: what a rank puts into an agreement.
func Flag(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

// Agreed waits for an agreement. That ranks have died is no error of it: the
// survivors have agreed on the flag all the same, and on who is dead. Lesson 3
// does this step by step.
func Agreed(ctx context.Context, vote *future.Future[int]) (flag int, dead []int, err error) {
	flag, err = vote.Get(ctx)
	if p, ok := errors.AsType[*mpicx.ProcFailedError](err); ok {
		return p.Flag, p.Ranks, nil
	}
	return flag, nil, err
}

// IsDeath says whether an error under mpicx.ErrorsReturn tells of a process that
// has died, here or where somebody revoked the communicator because of it.
// Anything else is no fault to recover from.
func IsDeath(err error) bool {
	_, dead := errors.AsType[*mpicx.ProcFailedError](err)
	return dead || errors.Is(err, mpicx.ErrRevoked)
}
