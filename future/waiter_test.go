package future_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// waiters begin futures, in the bubble of a test.
type waiters []func() future.Waiter

func (w waiters) begin() (fs []future.Waiter) {
	for _, f := range w {
		fs = append(fs, f())
	}
	return fs
}

// in begins a future that ends after this time.
func in(seconds int, err error) func() future.Waiter {
	return func() future.Waiter {
		return future.Go(func() (int, error) {
			time.Sleep(time.Duration(seconds) * time.Second)
			return seconds, err
		})
	}
}

func failed(err error) func() future.Waiter {
	return func() future.Waiter { return future.Failed[int](err) }
}

func ready() future.Waiter { return future.Ready("a value") }

// TestWaiters has WaitAll and WaitAny wait for futures, and compares when they return, and what.
func TestWaiters(t *testing.T) {
	errFirst, errSecond := errors.New("first"), errors.New("second")
	wrapped := fmt.Errorf("in an iteration: %w", errCommon)
	const all = -2 // WaitAll, not WaitAny
	for _, c := range []struct {
		name    string
		fs      waiters
		timeout int // seconds
		index   int
		want    error
		seconds int // until it returns
	}{
		{"of nothing", nil, 0, all, nil, 0},
		{"of nothing, late", nil, -1, all, nil, 0},
		{"all well", waiters{in(3, nil), ready, in(1, nil)}, 0, all, nil, 3},
		{"the first error in order, once all are done",
			waiters{in(1, nil), in(2, errFirst), in(1, errSecond), in(5, nil)}, 0, all, errFirst, 5},
		{"a common error at once", waiters{in(1, errFirst), in(2, errCommon), in(3, nil)}, 0, all, errCommon, 2},
		{"a common error that was wrapped", waiters{in(2, wrapped), in(3, nil)}, 0, all, wrapped, 2},
		{"ctx's cause", waiters{in(1, nil), in(9, nil), in(1, errFirst)}, 4, all, errLate, 4},
		{"ctx's cause, not the error of one while others go on", waiters{failed(errFirst), in(9, nil)}, -1, all, errLate, 0},
		{"the error, where all are done and ctx has ended", waiters{ready, failed(errFirst), ready}, -1, all, errFirst, 0},

		{"any of nothing", nil, 0, -1, nil, 0},
		{"the first to be done", waiters{in(3, nil), in(1, nil), in(2, nil)}, 0, 1, nil, 1},
		{"the first to be done, with its error", waiters{in(3, nil), in(2, errFirst)}, 0, 1, errFirst, 2},
		{"the lowest of those that are done", waiters{in(3, nil), ready, failed(errFirst)}, 0, 1, nil, 0},
		{"one alone", waiters{in(3, nil)}, 0, 0, nil, 3},
		{"none before ctx ends", waiters{in(3, nil), in(4, nil)}, 2, -1, errLate, 2},
		{"one that is done, though ctx has ended", waiters{in(3, nil), failed(errFirst)}, -1, 1, errFirst, 0},
		{"none, and ctx had ended", waiters{in(3, nil)}, -1, -1, errLate, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := timeout(c.timeout)
				defer cancel()
				start, fs := time.Now(), c.fs.begin()
				i := all
				var err error
				if c.index == all {
					err = future.WaitAll(ctx, fs...)
				} else {
					i, err = future.WaitAny(ctx, fs...)
				}
				require.Equal(t, c.index, i)
				require.Equal(t, c.want, err)
				require.Equal(t, time.Duration(c.seconds)*time.Second, time.Since(start))
				time.Sleep(time.Minute) // the others end
			})
		})
	}
}

// timeout returns a context with that many seconds; 0: without end.
func timeout(seconds int) (context.Context, context.CancelFunc) {
	if seconds == 0 {
		return bg, func() {}
	}
	return context.WithTimeoutCause(bg, time.Duration(seconds)*time.Second, errLate)
}

// late is a future that ends between two looks at it.
type late struct {
	future.Waiter
	err error
}

func (late) Test() (bool, error)          { return false, nil }
func (l late) Wait(context.Context) error { return l.err }

func TestWaitAnyWhereOneEndsAtTheLastMoment(t *testing.T) {
	never, _ := future.New[int]()
	for _, c := range []struct {
		err   error
		index int
	}{
		{nil, 0},
		{errOp, 0}, // an error of its own is not why ctx ended
		{errLate, -1},
		{errCommon, -1},
	} {
		i, err := future.WaitAny(ended(), late{never, c.err})
		require.Equal(t, c.err, err)
		require.Equal(t, c.index, i, "%v", c.err)
	}
}

// twin is a future that ends between the first look at it and the second.
type twin struct {
	future.Waiter
	looks *int
}

func (w twin) Test() (bool, error) { *w.looks++; return *w.looks > 1, nil }

func TestWaitAnyWhereSeveralEndTogether(t *testing.T) {
	for range 20 {
		done := future.Ready(1)
		i, err := future.WaitAny(bg, twin{done, new(int)}, twin{done, new(int)}, twin{done, new(int)})
		require.NoError(t, err)
		require.Zero(t, i, "the lowest")
	}
}

// commonError is an error of the whole party.
type commonError struct {
	waiting.CommonError
}

func (commonError) Error() string { return "error of another rank" }

var errCommon = commonError{}

// The values are in the order of the futures, whichever is done first; with an error there are
// none.
func TestGetAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := future.Go(func() (string, error) {
			time.Sleep(time.Second)
			return "late", nil
		})
		values, err := future.GetAll(t.Context(), late, future.Ready("early"), late)
		require.NoError(t, err)
		require.Equal(t, []string{"late", "early", "late"}, values)

		values, err = future.GetAll[string](t.Context())
		require.NoError(t, err)
		require.Empty(t, values)

		failed := errors.New("failed")
		values, err = future.GetAll(t.Context(), future.Ready("early"), future.Failed[string](failed))
		require.ErrorIs(t, err, failed)
		require.Nil(t, values)
	})
}
