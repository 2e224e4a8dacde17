package future

import (
	"context"
	"errors"
	"reflect"
)

// A Waiter is a future of any type.
type Waiter interface {
	Wait(context.Context) error
	Test() (done bool, err error)
	Done() <-chan struct{}
}

// Common is implemented by errors that are not of one operation alone: they
// ended all operations of their party, and every rank has them.
type Common interface {
	error
	Common() bool
}

// WaitAll waits for all of fs. It returns nil if all of them did what was
// asked. A [Common] error or ctx's cause is returned at once: the former has
// ended all the others, the latter would end every Wait. Otherwise it is the
// first error, in the order of fs, of an operation, once all are done.
func WaitAll(ctx context.Context, fs ...Waiter) error {
	var first error
	for _, f := range fs {
		err := f.Wait(ctx)
		if err == nil {
			continue
		}
		if isCommon(err) || isCause(ctx, err) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func isCommon(err error) bool {
	var c Common
	return errors.As(err, &c) && c.Common()
}

// isCause says whether err is why ctx ended, rather than an operation's own.
func isCause(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// WaitAny waits until one of fs is done. It returns its index, the lowest if
// several are, and how that one ended. If ctx ends first, or there is no future
// to wait for, the index is -1, the error ctx's cause or nil.
func WaitAny(ctx context.Context, fs ...Waiter) (int, error) {
	if len(fs) == 0 {
		return -1, nil
	}
	for i, f := range fs {
		if done, err := f.Test(); done {
			return i, err
		}
	}
	cases := make([]reflect.SelectCase, len(fs), len(fs)+1)
	for i, f := range fs {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(f.Done())}
	}
	if ctx.Done() != nil {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())})
	}
	chosen, _, _ := reflect.Select(cases)
	for i, f := range fs { // several may be done by now
		if done, err := f.Test(); done {
			return i, err
		}
	}
	ended := chosen == len(fs)
	if ended {
		chosen = 0 // a future knows better why ctx ended
	} // else it is done, but an error of the party is on its way
	err := fs[chosen].Wait(ctx)
	if isCause(ctx, err) || ended && isCommon(err) {
		return -1, err
	}
	return chosen, err
}
