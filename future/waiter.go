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
// first error, in the order of fs, of an operation, once all are done. An error
// of an operation that goes on (see [Promise.Disturb]) is returned only if no
// other is, and does not keep WaitAll from waiting for the others.
func WaitAll(ctx context.Context, fs ...Waiter) error {
	var first, goesOn error
	for _, f := range fs {
		err := f.Wait(ctx)
		if err == nil {
			continue
		}
		if isCommon(err) || isCause(ctx, err) {
			return err
		}
		if done, _ := f.Test(); !done {
			if goesOn == nil {
				goesOn = err
			}
		} else if first == nil {
			first = err
		}
	}
	if first != nil || goesOn == nil {
		return first
	}
	for _, f := range fs { // what was in trouble may have ended since
		if done, err := f.Test(); !done {
			return goesOn
		} else if err != nil {
			return err
		}
	}
	return nil
}

func isCommon(err error) bool {
	var c Common
	return errors.As(err, &c) && c.Common()
}

// isCause says whether err is why ctx ended, rather than an operation's own.
func isCause(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// WaitAny waits until one of fs is done, or in trouble (see [Promise.Disturb]).
// It returns its index, the lowest if several are, and how that one ended, or its
// trouble; one that is done goes before one in trouble. If ctx ends first, or there is no future
// to wait for, the index is -1, the error ctx's cause or nil.
func WaitAny(ctx context.Context, fs ...Waiter) (int, error) {
	if len(fs) == 0 {
		return -1, nil
	}
	if i, err := anyOf(fs); i >= 0 {
		return i, err
	}
	cases := make([]reflect.SelectCase, len(fs)+1)
	for {
		cases = cases[:len(fs)+1]
		for i, f := range fs {
			cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(f.Done())}
			if s, ok := f.(interface{ stirred() <-chan struct{} }); ok {
				cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(s.stirred())})
			}
		}
		if i, err := anyOf(fs); i >= 0 {
			return i, err
		}
		keeper, ends := endOf(ctx, fs)
		cases[len(fs)] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ends)}
		chosen, _, _ := reflect.Select(cases)
		if i, err := anyOf(fs); i >= 0 { // several may be done by now
			return i, err
		}
		if chosen > len(fs) {
			continue // the trouble is over, or an error of the party is on its way
		}
		if chosen < len(fs) { // it is done, but an error of the party is on its way
			err := fs[chosen].Wait(ctx)
			if isCause(ctx, err) {
				chosen = -1
			}
			return chosen, err
		}
		if keeper == nil {
			err := fs[0].Wait(ctx)
			if isCause(ctx, err) || isCommon(err) {
				return -1, err
			}
			return 0, err // it has just ended
		}
		if err := keeper.Ended(ctx); err != nil {
			return -1, err
		}
	}
}

// anyOf returns the first of fs that is done, or else in trouble; or -1.
func anyOf(fs []Waiter) (int, error) {
	troubled, trouble := -1, error(nil)
	for i, f := range fs {
		done, err := f.Test()
		if done {
			return i, err
		}
		if err != nil && troubled < 0 {
			troubled, trouble = i, err
		}
	}
	return troubled, trouble
}

// endOf returns what ends a wait with ctx, and the keeper, if one of fs has one,
// to ask why: it may let the wait go on.
func endOf(ctx context.Context, fs []Waiter) (Keeper, <-chan struct{}) {
	for _, f := range fs {
		if k, ok := f.(interface{ keptBy() Keeper }); ok && k.keptBy() != nil {
			place, ends := k.keptBy().Park(ctx)
			k.keptBy().Unpark(place)
			return k.keptBy(), ends
		}
	}
	return nil, ctx.Done()
}

func (c *core) keptBy() Keeper { return c.keeper }
