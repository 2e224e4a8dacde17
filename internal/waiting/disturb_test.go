package waiting_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

var errDisturbed = errors.New("disturbed")

// A disturbed future returns its error to all goroutines that wait, now and later. It continues when
// it is no longer disturbed, and ends as any other.
func TestDisturb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f, p := future.New[int]()
		errs := make(chan error, 9)
		wait := func() { errs <- f.Wait(ctx) }
		for range 3 { // one in the slot, others behind the broadcast
			go wait()
		}
		go func() {
			i, err := future.WaitAny(ctx, future.Failed[int](nil), f)
			require.Equal(t, 0, i)
			errs <- err
		}()
		go func() {
			other, _ := future.New[int]()
			i, err := future.WaitAny(ctx, other, f)
			require.Equal(t, 1, i)
			errs <- err
		}()
		synctest.Wait()
		require.Len(t, errs, 1) // of the one that was done
		require.NoError(t, <-errs)
		waiting.Of(p.Future()).Disturb(errDisturbed)
		synctest.Wait()
		require.Len(t, errs, 4)
		for range 4 {
			require.ErrorIs(t, <-errs, errDisturbed)
		}
		require.ErrorIs(t, f.Wait(ctx), errDisturbed)
		done, err := f.Test()
		require.False(t, done)
		require.ErrorIs(t, err, errDisturbed)
		select {
		case <-f.Done():
			require.Fail(t, "done")
		default:
		}

		waiting.Of(p.Future()).Disturb(nil)
		done, err = f.Test()
		require.False(t, done)
		require.NoError(t, err)
		go wait()
		synctest.Wait()
		require.Empty(t, errs)
		waiting.Of(p.Future()).Disturb(errDisturbed)
		require.ErrorIs(t, <-errs, errDisturbed)
		p.Complete(7, nil) // which ends the disturbance too
		v, err := f.Get(ctx)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// WaitAll waits for those that are not disturbed, and prefers what is final. A disturbance that is
// over when all are done is not returned.
func TestDisturbWaitAll(t *testing.T) {
	final := errors.New("final")
	for _, test := range []struct {
		name      string
		over      bool // the disturbance
		end, want error
	}{
		{"the other succeeds", false, nil, errDisturbed},
		{"the other fails", false, final, final},
		{"the disturbance is over", true, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, p := future.New[int]()
				g, q := future.New[int]()
				waiting.Of(p.Future()).Disturb(errDisturbed)
				err := make(chan error, 1)
				go func() { err <- future.WaitAll(t.Context(), f, g) }()
				synctest.Wait()
				require.Empty(t, err)
				if test.over {
					waiting.Of(p.Future()).Disturb(nil)
					p.Complete(1, nil)
				}
				q.Complete(1, test.end)
				require.ErrorIs(t, <-err, test.want)
			})
		})
	}
}
