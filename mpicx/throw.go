package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/future"
)

// Throw panics with err as a future.Thrown. The nearest Try, TryAll or Guard of this goroutine
// turns it back into an error, as catch does in C++; until then no other rank knows of it. In a
// goroutine that none of them called, defer future.Catch first. A nil err throws nothing.
// [Comm.Signal] tells the other ranks at once, and the caller continues.
func Throw(err error) {
	if err != nil {
		panic(future.Thrown{Err: err})
	}
}

// run calls fn, and returns what fn returned or threw.
func (s *scope) run(fn func(context.Context) error) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case future.Thrown:
			err = v.Err
		default:
			panic(v)
		}
		if p, ok := err.(*future.Panicked); ok {
			panic(p) // it is of another goroutine, and continues here (C3)
		}
	}()
	return fn(s)
}
