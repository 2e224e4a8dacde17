package future

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A Waiter is a future of any type.
type Waiter interface {
	Wait(context.Context) error
	Test() (done bool, err error)
	Done() <-chan struct{}
}

// WaitAll waits for all of fs and returns nil if all of them succeeded (MPI_Waitall). Collect
// futures in a []Waiter: a slice of *Future does not fit. Get of each has its value; [GetAll]
// returns the values of futures of one type. A nil future panics.
//
// Two kinds of errors are returned at once, because they end the other Waits too: an error that
// ended all operations of its party, such as mpicx's *PropagatedError, and ctx's cause.
// Otherwise WaitAll waits until all are done and returns the first error in the order of fs. An
// error after which an operation is still pending, such as mpicx's ErrProcFailedPending, is
// returned only if there is no other, and WaitAll still waits for the other futures.
func WaitAll(ctx context.Context, fs ...Waiter) error {
	mustHave(ctx, "WaitAll")
	var first, disturbed error
	for _, f := range fs {
		err := f.Wait(ctx)
		if err == nil {
			continue
		}
		if waiting.IsCommon(err) || isCause(ctx, err) {
			return err
		}
		if done, _ := f.Test(); !done {
			if disturbed == nil {
				disturbed = err
			}
		} else if first == nil {
			first = err
		}
	}
	if first != nil || disturbed == nil {
		return first
	}
	for _, f := range fs { // a future that was disturbed may be done by now
		if done, err := f.Test(); !done {
			return disturbed
		} else if err != nil {
			return err
		}
	}
	return nil
}

// GetAll waits for all of fs, as WaitAll does, and returns their values in the order of fs. If
// WaitAll would return an error, GetAll returns that error and no values.
func GetAll[T any](ctx context.Context, fs ...*Future[T]) ([]T, error) {
	all := make([]Waiter, len(fs))
	for i, f := range fs {
		all[i] = f
	}
	if err := WaitAll(ctx, all...); err != nil {
		return nil, err
	}
	values := make([]T, len(fs))
	for i, f := range fs {
		values[i] = f.value
	}
	return values, nil
}

// isCause says whether err is the cause of ctx, rather than the error of an operation.
func isCause(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// WaitAny waits until one of fs is done, or until a Wait for one would return an error although
// it is pending, such as mpicx's ErrProcFailedPending (MPI_Waitany). It returns the index of that
// future and what its Wait returns. If there are several, it takes one that is done before one
// that is pending, and then the lowest index. If ctx ends first, the index is -1 and the error
// ctx's cause. If fs is empty they are -1 and nil. A future that is done stays so: before the
// next call take it out of fs. What WaitAny has returned is the result: there is no need to Test
// the future, which may say false while an error is on its way (see [Future.Test]).
func WaitAny(ctx context.Context, fs ...Waiter) (int, error) {
	mustHave(ctx, "WaitAny")
	if len(fs) == 0 {
		return -1, nil
	}
	if i, err := anyOf(fs); i >= 0 {
		return i, err
	}
	cells := cellsOf(fs)
	for _, c := range cells {
		c.Await(1)
		defer c.Await(-1)
	}
	for _, c := range cells {
		c.Look()
	}
	for {
		s := newSeveral(fs, cells)
		if i, err := anyOf(fs); i >= 0 {
			return i, err
		}
		keeper, place, ended := parkAmong(ctx, cells)
		chosen := s.wait(place, cells, ended)
		if keeper != nil {
			keeper.Unpark(place)
		}
		if i, err := anyOf(fs); i >= 0 { // several may be done by now
			return i, err
		}
		switch {
		case chosen >= len(fs): // the disturbance is over, or an error of the party is on its way
		case chosen >= 0: // it is done, but an error of the party is on its way
			err := fs[chosen].Wait(ctx)
			if isCause(ctx, err) {
				chosen = -1
			}
			return chosen, err
		case keeper == nil:
			err := fs[0].Wait(ctx)
			if isCause(ctx, err) || waiting.IsCommon(err) {
				return -1, err
			}
			return 0, err // it has just ended
		case place.Drive == nil && !isClosed(ended): // it was nudged
		default:
			err := keeper.Ended(ctx)
			if i, done := anyOf(fs); i >= 0 { // an error may have ended it while Ended waited for that error
				return i, done
			}
			if err != nil {
				return -1, keeper.Describe(ctx, err, cells...)
			}
		}
	}
}

// cellsOf returns the cells of the futures of this package among fs.
func cellsOf(fs []Waiter) (cells []*waiting.Cell) {
	for _, f := range fs {
		if h, ok := f.(waiting.Holder); ok {
			cells = append(cells, waiting.Of(h))
		}
	}
	return cells
}

// parkAmong prepares a wait with ctx: ended ends it, and place says how to wait. If one of the
// cells has a keeper, parkAmong returns it too: when ended is closed, the keeper decides whether
// the wait continues.
func parkAmong(ctx context.Context, cells []*waiting.Cell) (k waiting.Keeper, place *waiting.Place, ended <-chan struct{}) {
	for _, c := range cells {
		if k := c.Kept(); k != nil {
			place, ended := k.Park(ctx)
			return k, place, ended
		}
	}
	return nil, new(waiting.Place), ctx.Done()
}

// several is woken when one of several futures is done or disturbed.
type several struct {
	// closing are the channels that wake it when one is closed: Done of each future, and Disturbed
	// of each cell.
	closing []<-chan struct{}
	stop    chan struct{} // ends Sleep
}

func newSeveral(fs []Waiter, cells []*waiting.Cell) *several {
	s := new(several)
	for _, f := range fs {
		s.closing = append(s.closing, f.Done())
	}
	for _, c := range cells {
		s.closing = append(s.closing, c.Disturbed())
	}
	return s
}

// wait blocks until s is woken or ended is closed. It returns the index of the first
// channel that is closed, or -1.
func (s *several) wait(place *waiting.Place, cells []*waiting.Cell, ended <-chan struct{}) int {
	if place.Observe != nil {
		defer place.Observe(cells...)()
	}
	if place.Drive != nil {
		place.Drive(s, ended)
	} else {
		s.receive(ended, place.Nudged())
	}
	return slices.IndexFunc(s.closing, isClosed)
}

// receive blocks until one of the channels, or of ends, delivers.
func (s *several) receive(ends ...<-chan struct{}) {
	var cases []reflect.SelectCase
	for _, c := range append(slices.Clip(s.closing), ends...) {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	_, _, _ = reflect.Select(cases)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *several) Woken() bool { return slices.ContainsFunc(s.closing, isClosed) }

func (s *several) Sleep() <-chan struct{} {
	woken, stop := make(chan struct{}), make(chan struct{})
	s.stop = stop
	go func() {
		defer close(woken)
		s.receive(stop)
	}()
	return woken
}

func (s *several) Rise() { close(s.stop) }

// anyOf returns the first of fs that is done, or else disturbed; or -1.
func anyOf(fs []Waiter) (int, error) {
	disturbed, disturbance := -1, error(nil)
	for i, f := range fs {
		done, err := f.Test()
		if done {
			return i, err
		}
		if err != nil && disturbed < 0 {
			disturbed, disturbance = i, err
		}
	}
	return disturbed, disturbance
}
