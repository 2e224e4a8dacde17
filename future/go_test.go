package future_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
)

func TestGoReturnsWhatTheFunctionDid(t *testing.T) {
	f := future.Go(func() (string, error) { return "v", nil })
	require.Equal(t, "v", f.MustGet(bg))

	f = future.Go(func() (string, error) { return "v", errOp })
	v, err := f.Get(bg)
	require.Equal(t, errOp, err)
	require.Empty(t, v)

	f = future.Go(func() (string, error) { panic(future.Thrown{Err: errOp}) })
	require.Equal(t, errOp, f.Wait(bg), "a thrown error is an error")

	f = future.Go(func() (string, error) { runtime.Goexit(); return "v", nil })
	require.Equal(t, future.ErrGoexit, f.Wait(bg))
}

// faulty is to be found in the stack.
func faulty(v any) (int, error) { panic(v) }

// A panic continues in whoever waits, and keeps its stack if that is another Go.
func TestAPanicGoesOnInWhoeverWaits(t *testing.T) {
	for _, value := range []any{"trouble", 42, io.ErrUnexpectedEOF} {
		inner := future.Go(func() (int, error) { return faulty(value) })
		f := future.Go(func() (int, error) { return inner.Get(bg) })
		<-f.Done()
		for name, wait := range map[string]func(){
			"Wait":     func() { _ = f.Wait(bg) },
			"Get":      func() { _, _ = f.Get(bg) },
			"MustWait": func() { f.MustWait(bg) },
			"MustGet":  func() { f.MustGet(bg) },
			"Test":     func() { _, _ = f.Test() },
			"WaitAll":  func() { _ = future.WaitAll(bg, future.Ready(1), f) },
			"WaitAny":  func() { _, _ = future.WaitAny(bg, f) },
		} {
			p, ok := thrown(wait).(*future.Panicked)
			require.True(t, ok, name)
			require.Equal(t, value, p.Value, name)
			require.Contains(t, string(p.Stack), "future_test.faulty", name)
			require.Contains(t, p.Error(), fmt.Sprint(value), name)
			require.Contains(t, p.Error(), "future_test.faulty", name)
			require.Equal(t, 1, strings.Count(p.Error(), "panic in another goroutine"), name)
			err, isError := value.(error)
			require.Equal(t, isError, err != nil && errors.Is(p, err), name)
			require.Equal(t, isError, p.Unwrap() != nil, name)
		}
	}
}

// A Panicked panics only where it is the result itself: wrapped, it is an error like any other.
func TestAWrappedPanicIsAnError(t *testing.T) {
	err := fmt.Errorf("rank 3: %w", &future.Panicked{Value: "trouble"})
	require.Equal(t, err, future.Failed[int](err).Wait(bg))
}

func TestCatch(t *testing.T) {
	catch := func(f func()) (err error) {
		defer future.Catch(&err)
		err = io.EOF
		f()
		return err
	}
	require.Equal(t, io.EOF, catch(func() {}), "no panic")
	require.Equal(t, errOp, catch(func() { panic(future.Thrown{Err: errOp}) }))
	panicked := &future.Panicked{Value: 1}
	require.Equal(t, error(panicked), catch(func() { panic(panicked) }))
	var p *future.Panicked
	require.ErrorAs(t, catch(func() { _, _ = faulty(errOp) }), &p)
	require.ErrorIs(t, p, errOp)
	require.Contains(t, string(p.Stack), "future_test.faulty")
}
