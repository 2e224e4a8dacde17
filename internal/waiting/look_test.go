package waiting_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// A goroutine that finds a future pending has its keeper look, which may end it. The future is
// awaited then only if the goroutine is about to block.
func TestKeeperLooks(t *testing.T) {
	over := errors.New("over")
	for name, c := range map[string]struct {
		awaited bool
		wait    func(f *future.Future[int]) error
	}{
		"Wait": {true, func(f *future.Future[int]) error { return f.Wait(bg) }},
		"Wait beside another": {true, func(f *future.Future[int]) error {
			return errors.Join(future.Go(func() (int, error) { return f.Get(bg) }).Wait(bg), f.Wait(bg))
		}},
		"WaitAny": {true, func(f *future.Future[int]) error {
			never, _ := future.New[int]()
			i, err := future.WaitAny(bg, never, f)
			require.Equal(t, 1, i)
			return err
		}},
		"Test": {false, func(f *future.Future[int]) error {
			done, err := f.Test()
			require.True(t, done)
			return err
		}},
		"Done": {false, func(f *future.Future[int]) error {
			<-f.Done()
			return f.Wait(bg)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := new(keeper)
			f, p := kept[int](k)
			looks := 0
			k.looked = func() {
				looks++
				awaited := waiting.Of(p.Future()).Awaited()
				if name == "WaitAny" && !awaited {
					return // Test and Done are before it
				}
				require.Equal(t, c.awaited, awaited)
				p.Complete(0, over)
			}
			require.ErrorIs(t, c.wait(f), over)
			require.False(t, waiting.Of(p.Future()).Awaited())
			asked := looks
			require.Equal(t, over, f.Wait(bg))
			require.Equal(t, asked, looks, "a Wait for what is done pays nothing")
		})
	}
}

// One that waits where another does is known until it has gone, too.
func TestAwaitedBySecond(t *testing.T) {
	k := new(keeper)
	f, p := kept[int](k)
	require.False(t, waiting.Of(p.Future()).Awaited())
	blocked := make(chan bool, 2)
	k.looked = func() {
		if waiting.Of(p.Future()).Awaited() {
			select {
			case blocked <- true:
			default: // it has been seen
			}
		}
	}
	first := future.Go(func() (int, error) { return f.Get(bg) })
	<-blocked
	i, err := future.WaitAny(ended(), f)
	require.Equal(t, -1, i)
	require.Equal(t, errLate, err)
	require.True(t, waiting.Of(p.Future()).Awaited())
	p.Complete(3, nil)
	require.Equal(t, 3, first.MustGet(bg))
	require.False(t, waiting.Of(p.Future()).Awaited())
}

// describing is a keeper that says in every error which futures were waited for.
type describing struct {
	keeper
	names map[*waiting.Cell]string
}

func (k *describing) Describe(_ context.Context, err error, waited ...*waiting.Cell) error {
	for _, id := range waited {
		err = fmt.Errorf("%s: %w", k.names[id], err)
	}
	return err
}

// A keeper that can describes what ends a Wait before its operation, or instead of its
// result; the result itself it does not see.
func TestKeeperDescribesErrors(t *testing.T) {
	k := &describing{keeper{decide: context.Cause}, make(map[*waiting.Cell]string)}
	a, pa := future.New[int]()
	b, pb := future.New[string]()
	waiting.Of(pa.Future()).Keep(k)
	waiting.Of(pb.Future()).Keep(k)
	k.names[waiting.Of(a)], k.names[waiting.Of(b)] = "a", "b"

	err := a.Wait(ended())
	require.EqualError(t, err, "a: "+errLate.Error())
	require.ErrorIs(t, err, errLate)
	require.EqualError(t, future.WaitAll(ended(), b, a), "b: "+errLate.Error())
	i, err := future.WaitAny(ended(), a, b, new(future.Future[bool]))
	require.Equal(t, -1, i)
	require.EqualError(t, err, ": b: a: "+errLate.Error()) // the last has no name

	waiting.Of(pa.Future()).Disturb(fmt.Errorf("goes on"))
	require.EqualError(t, a.Wait(ended()), "goes on")
	k.unresolved = true
	require.EqualError(t, a.Wait(ended()), "a: "+errLate.Error())

	pa.Complete(0, fmt.Errorf("failed"))
	pb.Complete("", nil)
	require.EqualError(t, a.Wait(ended()), "a: "+errLate.Error())
	k.unresolved = false
	require.EqualError(t, a.Wait(bg), "failed")
	require.NoError(t, b.Wait(bg))
}

// If the party has an error that is not resolved yet when the operation ends, WaitAny waits for
// what is to be said of it, or until ctx ends.
func TestWaitAnyWaitsForTheVerdict(t *testing.T) {
	for _, verdict := range []error{nil, errCommon} {
		k := new(keeper)
		f, p := kept[int](k)
		other, _ := kept[int](k)
		k.unresolved, k.verdict = true, verdict
		p.Complete(1, nil)
		i, err := future.WaitAny(bg, other, f)
		require.Equal(t, verdict, err)
		require.Equal(t, 1, i)
		require.Equal(t, 1, k.asked)
		require.NoError(t, f.Wait(bg))
		k.balanced(t, 1)
	}
	ctx, cancel := context.WithCancelCause(bg)
	f, p := kept[int](&keeper{unresolved: true, decide: func(ctx context.Context) error {
		cancel(errLate)
		return context.Cause(ctx)
	}})
	p.Complete(1, nil)
	i, err := future.WaitAny(ctx, f)
	require.Equal(t, errLate, err)
	require.Equal(t, -1, i)
}

// A keeper moves things on while somebody waits for several futures.
func TestWaitAnyDrives(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	var promises [2]*future.Promise[int]
	for name, k := range map[string]struct {
		drive func(s waiting.Sleeper, ended <-chan struct{}) bool
		index int
		err   error
	}{
		"looks": {func(s waiting.Sleeper, _ <-chan struct{}) bool {
			require.False(t, s.Woken())
			promises[1].Complete(1, nil)
			require.True(t, s.Woken())
			return true
		}, 1, nil},
		"sleeps": {func(s waiting.Sleeper, _ <-chan struct{}) bool {
			wake := s.Sleep()
			promises[0].Complete(0, io.EOF)
			<-wake
			s.Rise()
			return s.Woken()
		}, 0, io.EOF},
		"disturbed": {func(s waiting.Sleeper, _ <-chan struct{}) bool {
			waiting.Of(promises[1].Future()).Disturb(io.ErrNoProgress)
			return s.Woken()
		}, 1, io.ErrNoProgress},
		"ended": {func(_ waiting.Sleeper, ended <-chan struct{}) bool {
			cancel()
			<-ended
			return false
		}, -1, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := ctx
			party := &keeper{drive: k.drive}
			var fs []future.Waiter
			for i := range promises {
				f, p := kept[int](party)
				fs, promises[i] = append(fs, f), p
			}
			if name != "ended" {
				ctx = bg
			}
			i, err := future.WaitAny(ctx, fs...)
			require.Equal(t, k.index, i)
			require.Equal(t, k.err, err)
		})
	}
}
