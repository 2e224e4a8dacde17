package waiting

import (
	"context"
	"errors"
)

// A Keeper is responsible for the futures of one party, and can report an error of that
// party in any Wait. Its methods are called by many goroutines at once. A Keeper embeds
// [Nobody] for methods that it does not need.
type Keeper interface {
	// Yield is called by a Wait that finds its future pending, before it parks. The Keeper
	// may let goroutines run that will complete the future.
	Yield(*Cell)
	// Park is called by a goroutine about to wait with ctx. It lends a Place to wait in and says
	// which channel ends the wait early (nil: none). The Keeper may leave an end of ctx out of the
	// channel, and nudge the Place when it comes.
	Park(ctx context.Context) (*Place, <-chan struct{})
	// Unpark ends what Park began and gives the Place back.
	Unpark(*Place)
	// Look is called when a future is found pending: by a Wait before it blocks, by Test
	// and by Done. The Keeper completes futures that nothing else can complete any more. If
	// a goroutine is about to block for the future, it is Awaited by then.
	Look()
	// Ended is called when Park's channel has closed. It returns the error of the Wait, or
	// nil if the Wait has to park again.
	Ended(ctx context.Context) error

	// MayHaveVerdict says whether Verdict has to be called. Every Wait calls it, so it has to
	// be fast.
	MayHaveVerdict() bool
	// Verdict is called by a Wait whose operation is done or disturbed. It returns the error to
	// report instead of the result, or nil. end returns what the operation has ended with, and nil
	// while it is pending. If that IsOver, Verdict returns nil, because what came later is not this
	// Wait's. It may block until ctx ends; it then returns what Ended would return.
	Verdict(ctx context.Context, end func() error) error
	// TryVerdict is Verdict for Test. If Verdict would block, ok is false.
	TryVerdict(end func() error) (ok bool, err error)

	// IsOver says whether err is an error of the party that is over. An operation that has ended
	// with it returns it, and nothing that came later.
	IsOver(err error) bool

	// Failing is called when the operation is about to end with an error.
	Failing(c *Cell, err error)
	// Told is called when a Wait or Test is about to return an error. err is the error that
	// the operation ended with, or nil if the error is that of Verdict or TryVerdict.
	Told(c *Cell, err error)

	// Watch is called, once for each future, when a goroutine gets its Done channel instead
	// of waiting. Unwatch is called when that future is done.
	Watch()
	Unwatch()

	// Describe returns the error of Ended or Verdict, or an error that wraps it and names
	// what was waited for: one of these futures. It is called once, before the Wait returns.
	Describe(ctx context.Context, err error, waited ...*Cell) error
}

// Nobody keeps the futures that have no other Keeper: a Wait ends with the operation
// or with its context.
type Nobody struct{}

var _ Keeper = Nobody{}

func (Nobody) Yield(*Cell)                                                  {}
func (Nobody) Park(ctx context.Context) (*Place, <-chan struct{})           { return NewPlace(), ctx.Done() }
func (Nobody) Unpark(*Place)                                                {}
func (Nobody) Look()                                                        {}
func (Nobody) Ended(ctx context.Context) error                              { return context.Cause(ctx) }
func (Nobody) MayHaveVerdict() bool                                         { return false }
func (Nobody) Verdict(context.Context, func() error) error                  { return nil }
func (Nobody) TryVerdict(func() error) (bool, error)                        { return true, nil }
func (Nobody) IsOver(error) bool                                            { return false }
func (Nobody) Failing(*Cell, error)                                         {}
func (Nobody) Told(*Cell, error)                                            {}
func (Nobody) Watch()                                                       {}
func (Nobody) Unwatch()                                                     {}
func (Nobody) Describe(_ context.Context, err error, waited ...*Cell) error { return err }

// A Common error has ended all operations of its party, not only one, and every rank has
// it. Errors that embed [CommonError] are Common.
type Common interface {
	error
	common()
}

// CommonError makes an error that embeds it, or an alias of it, a [Common] error.
type CommonError struct{}

func (CommonError) common() {} //nolint:unused // it makes a Common error

// IsCommon says whether err is, or wraps, a [Common] error.
func IsCommon(err error) bool {
	_, ok := errors.AsType[Common](err)
	return ok
}
