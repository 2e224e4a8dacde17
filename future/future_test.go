package future_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mpicx/go-mpicx/future"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	bg      = context.Background()
	errOp   = errors.New("the operation failed")
	errLate = errors.New("took too long")
)

// ended returns a context that has ended, with errLate as its cause.
func ended() context.Context {
	ctx, cancel := context.WithCancelCause(bg)
	cancel(errLate)
	return ctx
}

// thrown returns what f panics with.
func thrown(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// Design rule F3.
func TestAResultCanBeHadOftenAndInEveryWay(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     *future.Future[string]
		value string
		err   error
	}{
		{"Ready", future.Ready("v"), "v", nil},
		{"Failed", future.Failed[string](errOp), "", errOp},
		{"Complete with a value", complete("v", nil), "v", nil},
		{"Complete with an error", complete("", errOp), "", errOp},
		{"an error hides the value", complete("v", errOp), "", errOp},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want any
			if c.err != nil {
				want = future.Thrown{Err: c.err}
			}
			for range 3 {
				for _, ctx := range []context.Context{bg, ended()} { // what is done needs no time
					require.Equal(t, c.err, c.f.Wait(ctx))
					v, err := c.f.Get(ctx)
					require.Equal(t, c.err, err)
					require.Equal(t, c.value, v)
					require.Equal(t, want, thrown(func() { c.f.MustWait(ctx) }))
					require.Equal(t, want, thrown(func() { v = c.f.MustGet(ctx) }))
					require.Equal(t, c.value, v)
				}
				done, err := c.f.Test()
				require.True(t, done)
				require.Equal(t, c.err, err)
				<-c.f.Done()
			}
		})
	}
}

func complete(value string, err error) *future.Future[string] {
	f, p := future.New[string]()
	p.Complete(value, err)
	return f
}

func TestThrownIsTheError(t *testing.T) {
	err := error(future.Thrown{Err: errOp})
	require.ErrorIs(t, err, errOp)
	require.EqualError(t, err, errOp.Error())
}

func TestDoneIsOneChannel(t *testing.T) {
	f, p := future.New[int]()
	before := f.Done()
	select {
	case <-before:
		require.Fail(t, "done before it is")
	default:
	}
	require.Equal(t, before, f.Done())
	p.Complete(1, nil)
	<-before
	require.Equal(t, before, f.Done())

	f = future.Ready(1) // asked for after the end only
	<-f.Done()
	require.Equal(t, f.Done(), f.Done())
}

func TestTheZeroFutureNeverEnds(t *testing.T) {
	var f future.Future[int]
	done, err := f.Test()
	require.False(t, done)
	require.NoError(t, err)
	require.Equal(t, errLate, f.Wait(ended()))
	without, cancel := context.WithCancel(bg) // a cause
	cancel()
	require.Equal(t, context.Canceled, f.Wait(without))
	select {
	case <-f.Done():
		require.Fail(t, "done")
	default:
	}
}

func TestAPromiseIsReadyForUse(t *testing.T) {
	var op struct {
		future.Promise[int]
		other int
	}
	f := op.Future()
	require.Same(t, f, op.Future())
	op.Complete(3, nil)
	require.Equal(t, 3, f.MustGet(bg))
}

// Design rule F3: the second Complete panics, and the result stays what it was.
func TestCompleteTwicePanics(t *testing.T) {
	for _, first := range []error{nil, errOp} {
		f, p := future.New[int]()
		p.Complete(1, first)
		for _, second := range []error{nil, errLate, nil} {
			require.PanicsWithValue(t, "future: completed twice", func() { p.Complete(2, second) })
		}
		v, err := f.Get(bg)
		require.Equal(t, first, err)
		if err == nil {
			require.Equal(t, 1, v)
		}
	}
}

// Guarding a Wait has to cost next to nothing (design rule P6).
func TestWaitingForWhatIsDoneAllocatesNothing(t *testing.T) {
	f := future.Ready(1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if v, err := f.Get(bg); v != 1 || err != nil {
			panic("wrong")
		}
		if done, err := f.Test(); !done || err != nil {
			panic("wrong")
		}
	}))
}

func TestNilContextPanics(t *testing.T) {
	var none context.Context
	f := future.Ready(1)
	require.PanicsWithValue(t, "future: Wait: nil context", func() { _ = f.Wait(none) })
	require.PanicsWithValue(t, "future: Wait: nil context", func() { _, _ = f.Get(none) })
	require.PanicsWithValue(t, "future: Wait: nil context", func() { f.MustWait(none) })
	require.PanicsWithValue(t, "future: Wait: nil context", func() { f.MustGet(none) })
	require.PanicsWithValue(t, "future: WaitAll: nil context", func() { _ = future.WaitAll(none) })
	require.PanicsWithValue(t, "future: WaitAny: nil context", func() { _, _ = future.WaitAny(none) })
}
