package waiting

import (
	"context"
	"errors"
)

// A Keeper stands behind the futures of one party, and can report an error of that
// party in any Wait. Its methods are called by many goroutines at once. Embed [Nobody]
// where a Keeper has nothing to say.
type Keeper interface {
	// Yield is called by a Wait that finds its future pending, before it parks: the
	// Keeper may let those run who will complete it.
	Yield()
	// Park is called by a goroutine about to wait with ctx. It lends a Place to wait
	// in and says which channel ends the wait early (nil: none).
	Park(ctx context.Context) (*Place, <-chan struct{})
	// Unpark ends what Park began and gives the Place back.
	Unpark(*Place)
	// Look is called when a future is found pending, by a Wait before it blocks, by
	// Test and by Done: the Keeper completes those that nothing else can complete any
	// more. The future is Awaited by then if a goroutine is about to block for it.
	Look()
	// Ended is asked, when Park's channel has closed, what the Wait shall return. If
	// it is nil, the Wait parks again.
	Ended(ctx context.Context) error

	// MayHaveVerdict says whether Verdict has to be asked. Every Wait asks it, so it
	// has to be quick.
	MayHaveVerdict() bool
	// Verdict is asked by a Wait whose operation is done. It returns the error to
	// report in place of the result, or nil for the result. It may block until ctx
	// ends, and then returns what Ended would.
	Verdict(ctx context.Context) error
	// TryVerdict is Verdict for Test: where Verdict would block, ok is false.
	TryVerdict() (ok bool, err error)

	// Failing is called when the operation is about to end with an error.
	Failing(c *Cell, err error)
	// Told is called when a Wait or Test is about to return the error that its operation
	// ended with, or in place of the result that of Verdict or TryVerdict: then err is nil.
	Told(c *Cell, err error)

	// Watch is told, once for each future, that somebody looks at its Done channel
	// instead of waiting; Unwatch, that this future is done.
	Watch()
	Unwatch()

	// Describe returns the error of Ended or Verdict, or one that wraps it and says
	// what was waited for: one of these futures. It is called once, on the way out.
	Describe(ctx context.Context, err error, waited ...*Cell) error
}

// Nobody keeps the futures that have no other Keeper: a Wait ends with the operation
// or with its context.
type Nobody struct{}

var _ Keeper = Nobody{}

func (Nobody) Yield()                                                       {}
func (Nobody) Park(ctx context.Context) (*Place, <-chan struct{})           { return NewPlace(), ctx.Done() }
func (Nobody) Unpark(*Place)                                                {}
func (Nobody) Look()                                                        {}
func (Nobody) Ended(ctx context.Context) error                              { return context.Cause(ctx) }
func (Nobody) MayHaveVerdict() bool                                         { return false }
func (Nobody) Verdict(context.Context) error                                { return nil }
func (Nobody) TryVerdict() (bool, error)                                    { return true, nil }
func (Nobody) Failing(*Cell, error)                                         {}
func (Nobody) Told(*Cell, error)                                            {}
func (Nobody) Watch()                                                       {}
func (Nobody) Unwatch()                                                     {}
func (Nobody) Describe(_ context.Context, err error, waited ...*Cell) error { return err }

// A Common error is not of one operation alone: it ended all operations of its party,
// and every rank has it. Errors are Common that embed [CommonError].
type Common interface {
	error
	common()
}

// CommonError makes the error that embeds it, or an alias, a [Common] one.
type CommonError struct{}

func (CommonError) common() {} //nolint:unused // it makes a Common error

// IsCommon says whether err is, or wraps, a [Common] error.
func IsCommon(err error) bool {
	_, ok := errors.AsType[Common](err)
	return ok
}
