package future

import (
	"context"

	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Future is the result of an operation that may still be running (MPI_Request). Once the
// operation is done its result never changes. All methods may be called from many goroutines at
// once.
//
// Operations that end at once, in the same way, may return one and the same Future: use an index,
// not the Future, to tell which of several operations is done.
//
// The zero Future never completes. Futures come from operations and from New, Go, Ready and
// Failed.
type Future[T any] struct {
	result
	value T
}

// result is the part of a result that does not depend on the type of its value.
type result struct {
	hidden       //nolint:unused // package waiting uses its method
	err    error // final, like the value, when the Cell is done
}

type hidden = waiting.Hidden //nolint:unused // the field's name, which is not exported

// mustHave panics if ctx is nil, even if the call would not use it.
func mustHave(ctx context.Context, call string) {
	if ctx == nil {
		panic("future: " + call + ": nil context")
	}
}

// Wait blocks until the operation is done (MPI_Wait). It returns nil, or why the operation did
// not do what was asked. If ctx ends first, Wait returns ctx's cause; the operation continues
// and may be waited for again. An operation that is done gives its result even if ctx has ended: a
// loop whose operations never block, such as those of a communicator of one rank, has to look at
// ctx itself. A nil ctx panics. [Future.MustWait] throws the error instead, and
// [Future.Test] never blocks.
func (f *Future[T]) Wait(ctx context.Context) error { return f.wait(ctx) }

// Get is Wait that also returns the value, or T's zero value if there is an error.
func (f *Future[T]) Get(ctx context.Context) (T, error) {
	if err := f.wait(ctx); err != nil {
		var none T
		return none, err
	}
	return f.value, nil
}

// MustWait is Wait that throws the error: it panics with Thrown. Use it inside mpicx's Try, and
// call it in Try's own goroutine. In any other goroutine defer Catch first. Without either the
// panic ends the process.
func (f *Future[T]) MustWait(ctx context.Context) {
	if err := f.wait(ctx); err != nil {
		panic(Thrown{err})
	}
}

// MustGet is Get that throws the error, like MustWait.
func (f *Future[T]) MustGet(ctx context.Context) T {
	v, err := f.Get(ctx)
	if err != nil {
		panic(Thrown{err})
	}
	return v
}

// Test says whether a Wait would return now, and what (MPI_Test). It never blocks.
//
// If the party of the operation has an error that is not resolved yet, as when another rank of an
// mpicx.Comm has signalled one, a Wait would block until it is. Then done is false even if the
// operation is done, and even if WaitAny, a Wait or an earlier Test has said so. Wait and Test then
// return the error until it is over, and afterwards the result, which is not lost. Done is not
// affected.
func (f *Future[T]) Test() (done bool, err error) {
	if done, err = waiting.Of(f).Test(&f.err); done && err == nil {
		err = f.outcome()
	}
	return done, err
}

// Done returns a channel that is closed when the operation is done, for select. Wait then says
// how it ended, as does Test unless an error is on its way.
func (f *Future[T]) Done() <-chan struct{} { return waiting.Of(f).Done() }

func (r *result) wait(ctx context.Context) error {
	mustHave(ctx, "Wait")
	if err := waiting.Of(r).Wait(ctx, &r.err); err != nil {
		return err
	}
	return r.outcome()
}

// outcome returns the error of an operation that is done. If the function behind it has panicked,
// outcome panics.
func (r *result) outcome() error {
	if p, ok := r.err.(*Panicked); ok {
		panic(p)
	}
	if r.err != nil {
		waiting.Of(r).Tell(r.err)
	}
	return r.err
}
