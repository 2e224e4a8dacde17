package waiting_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// Whoever finds a future pending has its keeper look, who may end it; it is awaited then
// only if somebody is about to block.
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
