package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// over returns a context that has ended.
func over(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// A Save in the background takes no error away from the program, and joins no round: errors that
// ranks raise before they know of each other's are in one verdict (P1, P2).
func TestSaveLeavesErrorsToTheProgram(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		st, _ := open(ctx, world)
		if world.Rank() != 0 { // so it stays under way
			st.Save(ctx, 0)
		}
		time.Sleep(time.Duration(1+world.Rank()) * time.Second) // all have left Open by then
		err := world.Signal(ctx, fmt.Errorf("of rank %d", world.Rank()))
		p, ok := errors.AsType[*mpicx.PropagatedError](err)
		require.True(t, ok, "%v", err)
		require.Len(t, p.Failures, 4)
		_, err = st.Restore(ctx)
		require.ErrorIs(t, err, checkpoint.ErrNone)
		st.Save(ctx, 0).MustWait(ctx)
		return st.Close(ctx)
	})
}

// A Save whose context ends at one rank, while it waits for the one before, ends at all. The next
// one meets the next one of the others.
func TestSaveWhoseContextEnds(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		st, x := open(ctx, world)
		if world.Rank() == 0 {
			time.Sleep(time.Second)
		}
		saves := []*future.Future[struct{}]{st.Save(ctx, 0)}
		own := ctx
		if world.Rank() == 1 {
			own = over(ctx)
		}
		for version := 1; version <= 2; version++ {
			*x = value(world.Rank(), version)
			saves = append(saves, st.Save(own, version))
		}
		if world.Rank() == 1 {
			require.ErrorIs(t, saves[1].Wait(own), context.Canceled)
		}
		*x = value(world.Rank(), 3)
		saves = append(saves, st.Save(ctx, 3))
		for version, f := range saves {
			err := f.Wait(ctx)
			if version == 0 || version == 3 {
				require.NoError(t, err, "version %d", version)
				continue
			}
			failed, ok := errors.AsType[*checkpoint.SaveError](err)
			require.True(t, ok, "version %d: %v", version, err)
			require.Equal(t, version, failed.Version)
			require.Equal(t, world.Rank() == 1, errors.Is(err, context.Canceled))
		}
		*x = nil
		restores(ctx, t, st, 3)
		require.Equal(t, value(world.Rank(), 3), *x)
		return st.Close(ctx)
	})
}

// A Restore whose context ends at one rank alone takes part in the agreement, after an error too,
// whether it waits for a Save or not. A Save that has nothing to wait for does not need its context.
// A Load may end at one rank alone; the messages of the next one are not taken for its own.
func TestEndedContexts(t *testing.T) {
	for _, late := range []bool{false, true} {
		mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			st, x := open(ctx, world)
			time.Sleep(time.Second) // all have opened it
			err := world.TryAll(ctx, func(context.Context) error { return errors.New("the next epoch") })
			require.True(t, propagated(err), "%v", err)
			me, next := world.Rank(), (world.Rank()+1)%3
			want, own := checkpoint.ErrNone, ctx
			if me == 0 {
				time.Sleep(time.Second)
			}
			if late {
				want = nil
				st.Save(ctx, 2)
			}
			if me == 1 {
				want, own = context.Canceled, over(ctx)
			}
			if _, err = st.Restore(own); err != nil || me != 1 || !late { // it may end before its context is looked at
				require.ErrorIs(t, err, want)
			}
			*x = value(me, 3)
			st.Save(ctx, 3).MustWait(ctx)
			st.Save(over(ctx), 4).MustWait(ctx)
			if me == 1 {
				_, err := checkpoint.Load[float64](over(ctx), st, "x", me, 4)
				require.ErrorIs(t, err, context.Canceled)
			} else {
				time.Sleep(time.Second)
				loads(ctx, t, st, "x", me, 4, value(me, 3))
			}
			loads(ctx, t, st, "x", next, 4, value(next, 3))
			restores(ctx, t, st, 4)
			return st.Close(ctx)
		})
	}
}

// Saves of the same version are told from each other, and Loads too, whatever errors come in
// between. Ranks that an error interrupts in different places meet in the next one.
func TestSameVersionAgain(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seedOf(t), 0))
	for run := range runs(1000) {
		n, seed := 2+rnd.IntN(4), rnd.Uint64()
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			own, left := rand.New(rand.NewPCG(seed, uint64(world.Rank()))), 3
			fail := func() error { // now and then
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
				err = world.TryAll(ctx, func(ctx context.Context) error { return sameVersion(ctx, t, world, st, fail) })
				if err != nil && !propagated(err) {
					return err
				}
			}
			return st.Close(ctx)
		})
		require.False(t, t.Failed(), "run %d", run)
	}
}

// sameVersion restores how often it was saved, and saves and loads it, unless fail returns an
// error.
func sameVersion(ctx context.Context, t *testing.T, world *mpicx.Comm, st *checkpoint.Store, fail func() error) error {
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
	for i := range 6 {
		x[0]++
		st.Save(ctx, 7)
		if err := fail(); err != nil {
			return err
		}
		if i > 2 {
			loads(ctx, t, st, "x", (world.Rank()+1)%world.Size(), 7, x)
		}
	}
	return nil
}
