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

// after returns a future that ends after so many seconds.
func after(seconds int, err error) future.Waiter {
	return future.Go(func() (int, error) {
		time.Sleep(time.Duration(seconds) * time.Second)
		return seconds, err
	})
}

func TestWaitAll(t *testing.T) {
	errFirst, errSecond := errors.New("first"), errors.New("second")
	wrapped := fmt.Errorf("in an iteration: %w", errCommon)
	for _, c := range []struct {
		name    string
		fs      func() []future.Waiter
		timeout int // seconds
		want    error
		seconds int // until it returns
	}{
		{name: "of nothing", fs: func() []future.Waiter { return nil }},
		{name: "of nothing, late", fs: func() []future.Waiter { return nil }, timeout: -1},
		{name: "all well", fs: func() []future.Waiter {
			return []future.Waiter{after(3, nil), future.Ready("a value"), after(1, nil)}
		}, seconds: 3},
		{name: "the first error in order, once all are done", fs: func() []future.Waiter {
			return []future.Waiter{after(1, nil), after(2, errFirst), after(1, errSecond), after(5, nil)}
		}, want: errFirst, seconds: 5},
		{name: "a common error at once", fs: func() []future.Waiter {
			return []future.Waiter{after(1, errFirst), after(2, errCommon), after(3, nil)}
		}, want: errCommon, seconds: 2},
		{name: "a common error that was wrapped", fs: func() []future.Waiter {
			return []future.Waiter{after(2, wrapped), after(3, nil)}
		}, want: wrapped, seconds: 2},
		{name: "ctx's cause", fs: func() []future.Waiter {
			return []future.Waiter{after(1, nil), after(9, nil), after(1, errFirst)}
		}, timeout: 4, want: errLate, seconds: 4},
		{name: "ctx's cause, not the error of one while others go on", fs: func() []future.Waiter {
			return []future.Waiter{future.Failed[int](errFirst), after(9, nil)}
		}, timeout: -1, want: errLate},
		{name: "the error, where all are done and ctx has ended", fs: func() []future.Waiter {
			return []future.Waiter{future.Ready(1), future.Failed[int](errFirst), future.Ready(2)}
		}, timeout: -1, want: errFirst},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := timeout(c.timeout)
				defer cancel()
				start := time.Now()
				require.Equal(t, c.want, future.WaitAll(ctx, c.fs()...))
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

func TestWaitAny(t *testing.T) {
	errFirst := errors.New("first")
	for _, c := range []struct {
		name    string
		fs      func() []future.Waiter
		timeout int
		index   int
		want    error
		seconds int
	}{
		{name: "of nothing", fs: func() []future.Waiter { return nil }, index: -1},
		{name: "the first to be done", fs: func() []future.Waiter {
			return []future.Waiter{after(3, nil), after(1, nil), after(2, nil)}
		}, index: 1, seconds: 1},
		{name: "the first to be done, with its error", fs: func() []future.Waiter {
			return []future.Waiter{after(3, nil), after(2, errFirst)}
		}, index: 1, want: errFirst, seconds: 2},
		{name: "the lowest of those that are done", fs: func() []future.Waiter {
			return []future.Waiter{after(3, nil), future.Ready("a value"), future.Failed[int](errFirst)}
		}, index: 1},
		{name: "one alone", fs: func() []future.Waiter {
			return []future.Waiter{after(3, nil)}
		}, seconds: 3},
		{name: "ctx's cause", fs: func() []future.Waiter {
			return []future.Waiter{after(3, nil), after(4, nil)}
		}, timeout: 2, index: -1, want: errLate, seconds: 2},
		{name: "one that is done, though ctx has ended", fs: func() []future.Waiter {
			return []future.Waiter{after(3, nil), future.Failed[int](errFirst)}
		}, timeout: -1, index: 1, want: errFirst},
		{name: "ctx had ended", fs: func() []future.Waiter {
			return []future.Waiter{after(3, nil)}
		}, timeout: -1, index: -1, want: errLate},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := timeout(c.timeout)
				defer cancel()
				start := time.Now()
				i, err := future.WaitAny(ctx, c.fs()...)
				require.Equal(t, c.index, i)
				require.Equal(t, c.want, err)
				require.Equal(t, time.Duration(c.seconds)*time.Second, time.Since(start))
				time.Sleep(time.Minute)
			})
		})
	}
}

// All of many, one after the other, as a program does that handles what comes.
func TestWaitAnyOfTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seconds := []int{5, 2, 4, 1, 3}
		var fs []future.Waiter
		for _, n := range seconds {
			fs = append(fs, after(n, nil))
		}
		for want := 1; want <= 5; want++ {
			i, err := future.WaitAny(bg, fs...)
			require.NoError(t, err)
			v, err := fs[i].(*future.Future[int]).Get(bg)
			require.NoError(t, err)
			require.Equal(t, want, v)
			fs = append(fs[:i], fs[i+1:]...)
		}
	})
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

// The values are in the order of the futures, whichever is done first; with an error there are none.
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
