package mpicx_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Whoever dies at any message of a Diagnose, the rank that asks gets an answer of all others, at
// once.
func TestDiagnoseInSpiteOfDeaths(t *testing.T) {
	const ulfmOnly = "ulfm"
	if mpicx.Backend != ulfmOnly {
		t.Skip("the black channel sees no death")
	}
	for n := 2; n <= 4; n++ {
		for asks := range n {
			for dies := range n {
				if dies == asks {
					continue
				}
				for k := 1; ; k++ {
					var found *mpicx.Diagnosis
					plan := fmt.Sprintf("kill %d in diagnose message %d", dies, k)
					killed := mpicxtest.RunFaults(t, n, plan, func(ctx context.Context, world *mpicx.Comm) error {
						world.SetErrhandler(mpicx.ErrorsReturn)
						f := mpicx.Recv(world, []int{0}, world.Rank(), 5) // from itself
						if world.Rank() == asks {
							var err error
							go func() {
								settle()
								begin := time.Now()
								found, err = world.Diagnose(ctx)
								require.NoError(t, err)
								require.Zero(t, time.Since(begin))
								_ = world.Revoke(ctx)
							}()
						}
						_ = f.Wait(ctx)
						return nil
					})
					if len(killed) == 0 {
						break
					}
					require.Equal(t, []int{dies}, killed)
					require.Empty(t, found.NoAnswer, "%s: %v", plan, found)
					require.Equal(t, []int{dies}, found.Dead, "%s: %v", plan, found)
					require.Equal(t, n-1, answered(found), "%s: %v", plan, found)
				}
			}
		}
	}
}

// It works on a communicator that nothing else works on, and on one that not all have made.
func TestDiagnoseOfWhatIsBroken(t *testing.T) {
	oneProcess(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() < 2 {
			dup := world.Dup()
			settle() // with ULFM it waits for rank 2
			if mpicx.Backend != "ulfm" {
				d, err := dup.MustGet(ctx).Diagnose(ctx)
				require.NoError(t, err)
				require.Equal(t, "ranks 0, 1: computing: nothing pending, last Dup #1 on world; rank 2: computing: nothing pending; the first that differs is rank 2", d.String())
			}
		}
		time.Sleep(time.Minute)
		err := world.Guard(ctx, func(ctx context.Context) error {
			if world.Rank() == 1 {
				return fmt.Errorf("bad input")
			}
			return world.Barrier().Wait(ctx)
		})
		require.Error(t, err)
		settle()
		d, err := world.Diagnose(ctx)
		require.NoError(t, err)
		require.Equal(t, 3, answered(d), "%v", d)
		settle()
		return nil
	})
}

// A wrong call is an error.
func TestDiagnoseRefused(t *testing.T) {
	var none *mpicx.Comm
	_, err := none.Diagnose(t.Context())
	require.EqualError(t, err, "mpicx: Diagnose: nil communicator (Split returns it for Undefined)")
	var closed *mpicx.Comm
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		_, err := world.Diagnose(nil) //nolint:staticcheck // this is what is tested
		require.ErrorContains(t, err, "Diagnose: nil context")
		dup := world.Dup().MustGet(ctx)
		if err := dup.Close(ctx); err != nil {
			return err
		}
		_, err = dup.Diagnose(ctx)
		require.ErrorContains(t, err, "world.dup1 is closed")
		if world.Rank() == 0 {
			closed = world
		}
		return nil
	})
	_, err = closed.Diagnose(t.Context())
	require.Error(t, err)
}

// Who waits for too short a time is told who has not answered: here nobody may.
func TestDiagnoseInNoTime(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		d, err := world.Diagnose(ended)
		require.NoError(t, err)
		require.Equal(t, 3, len(d.NoAnswer)+answered(d), "%v", d)
		return world.Barrier().Wait(ctx)
	})
}

// answered is how many ranks have.
func answered(d *mpicx.Diagnosis) (n int) {
	for _, g := range d.Groups {
		n += len(g.Ranks)
	}
	return n
}
