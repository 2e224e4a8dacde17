package waiting_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// Goroutines wait for the same future with contexts that end at any time, while it is disturbed and
// completed: the slot goes from one to another, is given up, and is taken by the completion.
// Everybody ends with the result, a disturbance or their own cause, and after that with the result.
func TestWaitersAndCompletionRace(t *testing.T) {
	for _, c := range []struct {
		name string
		keep *keeper
	}{{"without a keeper", nil}, {"with a keeper", new(keeper)}} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 0))
			iterations := 4000
			if testing.Short() {
				iterations /= 10
			}
			for i := range iterations {
				f, p := future.New[int]()
				if c.keep != nil {
					waiting.Of(p.Future()).Keep(c.keep)
				}
				race(t, r, f, p, i)
			}
			if c.keep != nil {
				c.keep.balanced(t, 0)
			}
		})
	}
}

// race has some goroutines wait for f while p is completed with want.
func race(t *testing.T, r *rand.Rand, f *future.Future[int], p *future.Promise[int], want int) {
	var all sync.WaitGroup
	for range 1 + r.IntN(4) {
		raceOneWaiter(t, &all, f, want, r.IntN(6), r.IntN(20), r.IntN(20))
	}
	yields, disturbances := r.IntN(20), r.IntN(4)
	all.Go(func() {
		yield(yields)
		for k := range disturbances {
			waiting.Of(f).Disturb([]error{errDisturbed, nil}[k%2])
		}
		p.Complete(want, nil)
	})
	all.Wait()
	require.Equal(t, want, f.MustGet(ended()))
}

func raceOneWaiter(t *testing.T, all *sync.WaitGroup, f *future.Future[int], want, way, before, until int) {
	all.Go(func() {
		yield(before)
		cause := fmt.Errorf("cause of iteration %d", want)
		ctx, cancel := context.WithCancelCause(bg)
		defer cancel(nil)
		switch way {
		case 0: // never ends
			ctx = bg
		case 1: // has ended
			cancel(cause)
		case 2: // looks at Done
			<-f.Done()
		case 3: // polls
			for {
				if done, err := f.Test(); done {
					require.NoError(t, err)
					break
				}
				runtime.Gosched()
			}
		default: // ends meanwhile
			all.Go(func() {
				yield(until)
				cancel(cause)
			})
		}
		v, err := f.Get(ctx)
		for err != nil {
			require.Contains(t, []error{cause, errDisturbed}, err)
			require.Zero(t, v)
			v, err = f.Get(bg)
		}
		require.NoError(t, err)
		require.Equal(t, want, v)
	})
}

func yield(n int) {
	for range n {
		runtime.Gosched()
	}
}
