package lesson

import (
	"context"
	"errors"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Flag is a rank's contribution to an agreement: 1 for true.
func Flag(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

// Agreed waits for an agreement. Deaths are not an error here: the survivors have agreed on the
// flag, and on which ranks are dead. Lesson 3 does this step by step.
func Agreed(ctx context.Context, vote *future.Future[int]) (flag int, dead []int, err error) {
	flag, err = vote.Get(ctx)
	if p, ok := errors.AsType[*mpicx.ProcFailedError](err); ok {
		return p.Flag, p.Ranks, nil
	}
	return flag, nil, err
}

// IsDeath reports whether an error under mpicx.ErrorsReturn was caused by a death: it names the
// dead rank, or another rank has revoked the communicator because of it. The lessons do not recover
// from other errors.
func IsDeath(err error) bool {
	_, dead := errors.AsType[*mpicx.ProcFailedError](err)
	return dead || errors.Is(err, mpicx.ErrRevoked)
}
