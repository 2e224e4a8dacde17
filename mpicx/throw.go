package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/future"
)

// Throw panics with err as a future.Thrown, for the nearest Try of this goroutine to take
// back: what throw is to C++. In a goroutine that Try has not called, defer future.Catch
// first. A nil err throws nothing.
func Throw(err error) {
	if err != nil {
		panic(future.Thrown{Err: err})
	}
}

// run calls fn, ends the scope's context, and returns what fn returned or threw.
//
//go:noinline
func (s *scope) run(fn func(context.Context) error) (err error) {
	defer s.exit()
	defer func() {
		switch v := recover().(type) {
		case nil:
		case future.Thrown:
			err = v.Err
		default:
			panic(v)
		}
		if p, ok := err.(*future.Panicked); ok {
			panic(p) // of a goroutine of the function's: it goes on here (C3)
		}
	}()
	return fn(s)
}
