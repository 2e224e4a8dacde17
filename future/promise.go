package future

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Promise is the writing side of a [Future]: whoever holds it ends the
// future, once. It is made to be a field of the operation that it is the result
// of, so that one allocation serves both. The zero Promise is ready for use.
type Promise[T any] struct{ future Future[T] }

// Future returns the reading side.
func (p *Promise[T]) Future() *Future[T] { return &p.future }

// Complete ends the future with a value, or with an error if err is not nil.
// It never blocks. A second call panics.
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

// ErrGoexit is how a future ends whose function left by [runtime.Goexit].
var ErrGoexit = errors.New("future: the function left by runtime.Goexit")

// Go starts fn in a goroutine and returns its result as a future. A panic of
// fn goes on in whoever waits, as a [*Panicked].
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

// Panicked is what Wait panics with if the function behind the future did. As an error
// it is a panic that [Catch] has stopped, on its way to the goroutine where it goes on.
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

// Catch turns a panic into the error of the function that defers it: what was thrown into
// its error, any other panic into a [*Panicked]. In a goroutine other than Try's, where
// an error that is thrown would end the process, it comes first:
//
//	group.Go(func() (err error) {
//		defer future.Catch(&err)
//		…
//	})
//
// Return what group.Wait returns from the function of mpicx's Try or Guard, and it goes
// on there: an error is everyone's, a *Panicked panics. Catch does not see
// [runtime.Goexit], which no error group does.
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

// Thrown is what the Must methods panic with: an error on its way to the next
// place that takes thrown errors back, such as mpicx's Try.
type Thrown struct{ Err error }

func (t Thrown) Error() string { return t.Err.Error() }
func (t Thrown) Unwrap() error { return t.Err }

var _ Waiter = (*Future[context.Context])(nil)
