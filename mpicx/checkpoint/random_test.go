package checkpoint_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A Once variable that is protected while a Save goes on is in the next version.
func TestProtectDuringSave(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		st := opened(ctx, world)
		x, a := value(world.Rank(), 1), value(world.Rank(), 2)
		st.Protect("x", &x)
		first := st.Save(ctx, 1)
		st.Protect("a", &a, checkpoint.Once)
		first.MustWait(ctx)
		st.Save(ctx, 2).MustWait(ctx)
		a = nil
		v := restored(ctx, st)
		require.Equal(t, 2, v)
		require.Equal(t, value(world.Rank(), 2), a)
		return st.Close(ctx)
	})
}

// repeatedly calls fn until it has succeeded at all ranks at once. Fn may call fail, which
// fails now and then, at each rank by itself.
func repeatedly(t *testing.T, fn func(ctx context.Context, world *mpicx.Comm, st *checkpoint.Store, fail func() error) error) {
	rnd := rand.New(rand.NewPCG(seedOf(t), 0))
	for run := range runs(1000) {
		n, seed := 2+rnd.IntN(4), rnd.Uint64()
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			own, left := rand.New(rand.NewPCG(seed, uint64(world.Rank()))), 3
			fail := func() error {
				for range own.IntN(30) {
					runtime.Gosched()
				}
				if left == 0 || own.IntN(6) > 0 {
					return nil
				}
				left--
				return errors.New("fails")
			}
			st := opened(ctx, world)
			for err := errors.New("not yet"); err != nil; {
				err = world.TryAll(ctx, func(ctx context.Context) error { return fn(ctx, world, st, fail) })
				if err != nil && !propagated(err) {
					return err
				}
			}
			return st.Close(ctx)
		})
		require.False(t, t.Failed(), "run %d", run)
	}
}

// Saves of the same version are told from each other, whatever errors come in between.
func TestSameVersionAgain(t *testing.T) {
	repeatedly(t, func(ctx context.Context, world *mpicx.Comm, st *checkpoint.Store, fail func() error) error {
		x := make([]int, 10)
		st.Protect("x", &x)
		if v, err := st.Restore(ctx); err == nil {
			require.Equal(t, 7, v)
		} else if !errors.Is(err, checkpoint.ErrNone) {
			return err
		}
		all := make([]int, world.Size())
		mpicx.Allgather(world, x[:1], all).MustWait(ctx)
		for _, count := range all {
			require.Equal(t, x[0], count, "ranks restore %v", all)
		}
		for range 3 {
			x[0]++
			st.Save(ctx, 7)
			if err := fail(); err != nil {
				return err
			}
		}
		return nil
	})
}

// Ranks that an error interrupts in different places of Loads meet in the next one.
func TestLoadAfterErrors(t *testing.T) {
	repeatedly(t, func(ctx context.Context, world *mpicx.Comm, st *checkpoint.Store, fail func() error) error {
		me, next := world.Rank(), (world.Rank()+1)%world.Size()
		x := []int{me, 1}
		st.Protect("x", &x)
		st.Save(ctx, 1).MustWait(ctx)
		for range 3 {
			if err := fail(); err != nil {
				return err
			}
			loads(ctx, t, st, "x", next, 1, []int{next, 1})
		}
		return nil
	})
}
