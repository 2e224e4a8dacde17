package future

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Promise is the writing side of a Future: its holder completes the future, once. It can be a
// field of the operation whose result it is, so that one allocation serves both. The zero
// Promise is ready for use.
type Promise[T any] struct{ future Future[T] }

// Future returns the reading side.
func (p *Promise[T]) Future() *Future[T] { return &p.future }

// Complete ends the future with a value, or with an error if err is not nil. It never blocks. A
// second call panics.
func (p *Promise[T]) Complete(value T, err error) {
	f := &p.future
	cell := waiting.Of(f)
	if !cell.IsDone() { // before the result changes
		if err == nil {
			f.value = value
		} else {
			cell.Fail(err)
		}
		f.err = err
		if cell.Complete() {
			return
		}
	}
	panic("future: completed twice")
}

// New returns a future and its promise.
func New[T any]() (*Future[T], *Promise[T]) {
	p := new(Promise[T])
	return p.Future(), p
}

// Ready returns a future that is done, with a value.
func Ready[T any](value T) *Future[T] { return done(value, nil) }

// Failed returns a future that is done, with an error.
func Failed[T any](err error) *Future[T] {
	var none T
	return done(none, err)
}

func done[T any](value T, err error) *Future[T] {
	f, p := New[T]()
	p.Complete(value, err)
	return f
}

// ErrGoexit is the error of a future whose function left by runtime.Goexit.
var ErrGoexit = errors.New("future: the function left by runtime.Goexit")

// Go starts fn in a goroutine and returns its result as a future. If fn panics, whoever waits
// for the future panics with a *Panicked.
func Go[T any](fn func() (T, error)) *Future[T] {
	f, p := New[T]()
	go func() {
		var value T
		err := ErrGoexit
		defer func() { p.Complete(value, err) }()
		defer Catch(&err)
		value, err = fn()
	}()
	return f
}

// Panicked is what Wait panics with if the function behind the future panicked. As an error it
// is a panic that Catch has caught; Try and Guard of package mpicx panic with it again.
type Panicked struct {
	Value any    // what the function panicked with
	Stack []byte // of the function's goroutine, as runtime/debug.Stack prints it
}

func (p *Panicked) Error() string {
	return fmt.Sprintf("panic in another goroutine: %v\n\n%s", p.Value, p.Stack)
}

// Unwrap returns the panic's value if that is an error.
func (p *Panicked) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Catch turns a panic into the error of the function that defers it. If the panic was thrown
// (by MustWait, MustGet or mpicx.Throw), that is the error that was thrown. Any other panic
// becomes a *Panicked. In a goroutine other than Try's a thrown error would end the process; so
// it begins with Catch:
//
//	group.Go(func() (err error) {
//		defer future.Catch(&err)
//		…
//	})
//
// Return what group.Wait returns from the function of mpicx's Try or Guard: an error then goes
// to all ranks, and a *Panicked panics there. Catch does not catch runtime.Goexit; nor does an
// error group.
func Catch(err *error) {
	switch v := recover().(type) {
	case nil:
	case Thrown:
		*err = v.Err
	case *Panicked:
		*err = v
	default:
		*err = &Panicked{v, debug.Stack()}
	}
}

// Thrown is what MustWait, MustGet and mpicx.Throw panic with. The nearest Try of package
// mpicx, or Catch, turns it back into Err.
type Thrown struct{ Err error }

func (t Thrown) Error() string { return t.Err.Error() }
func (t Thrown) Unwrap() error { return t.Err }

var _ Waiter = (*Future[context.Context])(nil)
