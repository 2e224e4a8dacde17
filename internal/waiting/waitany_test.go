package waiting_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// The party has an error that is not resolved yet when the operation ends:
// WaitAny waits for what is to be said of it.
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
}

// The wait for the verdict ends with ctx, too.
func TestWaitAnyWhereTheVerdictTakesTooLong(t *testing.T) {
	k := &slowKeeper{}
	f, p := future.New[int]()
	waiting.Of(p.Future()).Keep(k)
	p.Complete(1, nil)
	ctx, cancel := context.WithCancelCause(bg)
	k.hurry = func() { cancel(errLate) }
	i, err := future.WaitAny(ctx, f)
	require.Equal(t, errLate, err)
	require.Equal(t, -1, i)
}

// slowKeeper has no verdict before ctx ends.
type slowKeeper struct {
	contextKeeper
	hurry func()
}

func (k *slowKeeper) TryVerdict(func() error) (bool, error) { return false, nil }

func (k *slowKeeper) Verdict(ctx context.Context, _ func() error) error {
	k.hurry()
	return context.Cause(ctx)
}

// drivingKeeper moves things on while somebody waits for several futures.
type drivingKeeper struct {
	*keeper
	drive func(s waiting.Sleeper, ended <-chan struct{}) bool
}

func (k drivingKeeper) Park(ctx context.Context) (*waiting.Place, <-chan struct{}) {
	place, ended := k.keeper.Park(ctx)
	place.Drive = k.drive
	return place, ended
}

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
			party := drivingKeeper{new(keeper), k.drive}
			var fs []future.Waiter
			for i := range promises {
				promises[i] = new(future.Promise[int])
				waiting.Of(promises[i].Future()).Keep(party)
				fs = append(fs, promises[i].Future())
			}
			ctx := ctx
			if name != "ended" {
				ctx = bg
			}
			i, err := future.WaitAny(ctx, fs...)
			require.Equal(t, k.index, i)
			require.Equal(t, k.err, err)
		})
	}
}
