package recovery

import (
	"fmt"
	"log/slog"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
)

// DefaultAttempts is how many attempts Run makes if MaxAttempts is not given.
const DefaultAttempts = 10

// An Option says how Run recovers. All ranks pass the same.
type Option func(*options)

type options struct {
	replace, shrink, elseShrink bool
	storing                     bool
	store                       []checkpoint.Option
	attempts                    int
	log                         *slog.Logger
	err                         error
}

// Replace lets spares take the places of lost ranks: see mpicx.Comm.Replace. If there are too
// few spares, Run returns the *mpicx.SpareError, or shrinks if [ElseShrink] is given.
func Replace() Option { return func(o *options) { o.replace = true } }

// Shrink has the remaining ranks continue alone.
func Shrink() Option { return func(o *options) { o.shrink = true } }

// ElseShrink lets the remaining ranks continue alone if Replace fails.
func ElseShrink() Option { return func(o *options) { o.elseShrink = true } }

// Checkpoint opens Attempt.Store with these options.
func Checkpoint(opts ...checkpoint.Option) Option {
	return func(o *options) { o.storing, o.store = true, opts }
}

// MaxAttempts has Run give up when n attempts have failed. An attempt to open the Store counts.
func MaxAttempts(n int) Option {
	return func(o *options) {
		o.attempts = n
		if n < 1 {
			o.err = wrong(mpicx.ClassCount, "%d attempts, expected 1 or more", n)
		}
	}
}

// Logger has each rank log the attempts that follow a failed one, with the attributes rank,
// comm, attempt, cause, replaced and gone.
func Logger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

func newOptions(opts []Option) (*options, error) {
	o := &options{attempts: DefaultAttempts}
	for i, opt := range opts {
		if opt == nil {
			return nil, wrong(mpicx.ClassOther, "option %d is nil, expected one such as Shrink()", i)
		}
		opt(o)
	}
	switch {
	case o.err != nil:
	case o.replace && o.shrink:
		o.err = wrong(mpicx.ClassOther, "options Replace and Shrink, expected one of them, or Replace and ElseShrink")
	case o.elseShrink && !o.replace:
		o.err = wrong(mpicx.ClassOther, "option ElseShrink without Replace, expected both, or Shrink")
	}
	return o, o.err
}

// wrong is the error of an argument of Run.
func wrong(class mpicx.Class, format string, args ...any) error {
	return &mpicx.MPIError{Op: "recovery.Run", Class: class, Text: fmt.Sprintf(format, args...)}
}
