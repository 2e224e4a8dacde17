package future

import (
	"context"
	"errors"
	"reflect"
	"slices"
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
	mustHave(ctx, "WaitAll")
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
	mustHave(ctx, "WaitAny")
	if len(fs) == 0 {
		return -1, nil
	}
	if i, err := anyOf(fs); i >= 0 {
		return i, err
	}
	cases := make([]reflect.SelectCase, len(fs)+1)
	defer awaitAll(fs)()
	for {
		cases = cases[:len(fs)+1]
		var stirred []<-chan struct{}
		for i, f := range fs {
			cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(f.Done())}
			if s, ok := f.(interface{ stirred() <-chan struct{} }); ok {
				stirred = append(stirred, s.stirred())
				cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(stirred[len(stirred)-1])})
			}
		}
		if i, err := anyOf(fs); i >= 0 {
			return i, err
		}
		keeper, ends := endOf(ctx, fs)
		cases[len(fs)] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ends)}
		chosen := selectOrDrive(keeper, &several{fs: fs, stirred: stirred, cases: cases}, ends)
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
			return -1, describe(ctx, err, keeper, identities(fs)...)
		}
	}
}

// selectOrDrive waits until one of the cases can be received from, and returns its index:
// by looking again and again, if the keeper has something to do meanwhile.
func selectOrDrive(keeper Keeper, s *several, ends <-chan struct{}) (chosen int) {
	if d, ok := keeper.(driver); ok {
		woken, drove := d.Drive(s, ends)
		switch i := slices.IndexFunc(s.fs, isOver); {
		case !drove:
		case !woken:
			return len(s.fs)
		case i >= 0:
			return i
		default:
			return len(s.cases) // trouble
		}
	}
	chosen, _, _ = reflect.Select(s.cases)
	return chosen
}

func isOver(f Waiter) bool {
	if c, ok := f.(interface{ isDone() bool }); ok {
		return c.isDone()
	}
	return isClosed(f.Done())
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A driver is a Keeper that moves things on while a goroutine of its party waits.
type driver interface {
	// Drive waits until s is woken, which it says, or ended is closed; or says that it
	// does not do so.
	Drive(s Sleeper, ended <-chan struct{}) (woken, drove bool)
}

// A Sleeper is what a driver waits for. Looking is cheap; else there is a channel that
// delivers once it is Woken, and perhaps before, until Rise.
type Sleeper interface {
	Woken() bool
	Sleep() <-chan struct{}
	Rise()
}

// several is woken when one of several futures is done, or gets into trouble.
type several struct {
	fs      []Waiter
	stirred []<-chan struct{}
	cases   []reflect.SelectCase // of both, and of what ends the wait
	stop    chan struct{}
}

func (s *several) Woken() bool {
	return slices.ContainsFunc(s.fs, isOver) || slices.ContainsFunc(s.stirred, isClosed)
}

func (s *several) Sleep() <-chan struct{} {
	woken, stop := make(chan struct{}), make(chan struct{})
	s.stop = stop
	cases := append(slices.Clone(s.cases), reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(stop)})
	go func() {
		defer close(woken)
		_, _, _ = reflect.Select(cases)
	}()
	return woken
}

func (s *several) Rise() { close(s.stop) }

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

// awaitAll says that a goroutine waits for all of fs, until it calls stop.
func awaitAll(fs []Waiter) (stop func()) {
	each := func(do func(awaitable)) {
		for _, f := range fs {
			if a, ok := f.(awaitable); ok {
				do(a)
			}
		}
	}
	each(func(a awaitable) { a.doneChan(); a.await(1) })
	each(awaitable.look)
	return func() { each(func(a awaitable) { a.await(-1) }) }
}

// An awaitable is a future of this package.
type awaitable interface {
	doneChan() <-chan struct{}
	await(n int32)
	look()
}

// identities returns those of the futures of this package among fs.
func identities(fs []Waiter) []ID {
	var ids []ID
	for _, f := range fs {
		if c, ok := f.(interface{ id() ID }); ok {
			ids = append(ids, c.id())
		}
	}
	return ids
}
