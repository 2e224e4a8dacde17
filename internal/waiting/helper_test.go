package waiting_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	bg      = context.Background()
	errOp   = errors.New("the operation failed")
	errLate = errors.New("took too long")
)

// ended returns a context that has ended, with errLate as its cause.
func ended() context.Context {
	ctx, cancel := context.WithCancelCause(bg)
	cancel(errLate)
	return ctx
}
