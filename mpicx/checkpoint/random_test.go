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

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A walk is a random program of one rank: saves, of which some are waited for, errors at any
// time, deaths, restores, and repairs. What it restores is held against what was saved.
type walk struct {
	t        *testing.T
	comm     *mpicx.Comm
	st       *checkpoint.Store
	own      *rand.Rand // this rank's
	seed     uint64     // all ranks'
	opts     []checkpoint.Option
	name     int   // in the world
	x        []int // rank in the world, version, error, padding
	errs     int   // that were told so far
	acked    int   // the newest version that this rank knows to count
	version  int
	round    int
	again    bool // the next round begins with a Restore
	failures int
	restores int
}

// all returns a decision that all ranks make alike, after as many errors.
func (w *walk) all(n int) int {
	return rand.New(rand.NewPCG(w.seed, uint64(w.errs))).IntN(n)
}

func (w *walk) pause() { time.Sleep(time.Duration(w.own.IntN(30)) * time.Microsecond) }

func (w *walk) fails() error {
	w.pause()
	if w.failures > 0 && w.own.IntN(8) == 0 {
		w.failures--
		return fmt.Errorf("rank %d fails", w.name)
	}
	return nil
}

// restore goes back, and checks where to.
func (w *walk) restore(ctx context.Context) error {
	w.x = nil
	v, err := w.st.Restore(ctx)
	if errors.Is(err, checkpoint.ErrNone) {
		require.Less(w.t, w.acked, 0, "rank %d", w.name)
		v, w.x = -1, []int{w.name, -1, 0}
	} else if err != nil {
		return err
	}
	require.Equal(w.t, []int{w.name, v}, w.x[:2])
	all := make([]int, 3*w.comm.Size())
	mpicx.Allgather(w.comm, []int{v, w.x[2], w.acked}, all).MustWait(ctx)
	for i := 0; i < len(all); i += 3 {
		require.Equal(w.t, all[:2], all[i:i+2], "ranks restore different versions: %v", all)
		require.LessOrEqual(w.t, all[i+2], v, "a version that counted is forgotten: %v", all)
	}
	w.again = false
	w.restores++
	return nil
}

// steps saves some versions.
func (w *walk) steps(ctx context.Context) error {
	for range 4 {
		w.x = append([]int{w.name, w.version, w.errs}, make([]int, w.name*3)...)
		f := w.st.Save(ctx, w.version)
		for i := range w.x {
			w.x[i] = -1
		}
		if err := w.fails(); err != nil {
			return err
		}
		if w.own.IntN(3) == 0 {
			f.MustWait(ctx)
			w.acked = max(w.acked, w.version)
		}
		if err := w.fails(); err != nil {
			return err
		}
		w.version++
	}
	return nil
}

// run does so many rounds, each until an error. It returns nil at those that survive.
func (w *walk) run(ctx context.Context, rounds int, opts ...checkpoint.Option) error {
	w.opts = opts
	for opened := false; !opened; {
		err := w.comm.TryAll(ctx, w.open)
		if opened, err = ended(ctx, w.comm, err == nil, err); corrupted(err) {
			w.repair(ctx)
			opened = true
		} else if err != nil && !propagated(err) {
			return err
		}
	}
	for done := false; !done; {
		err := w.comm.TryAll(ctx, func(ctx context.Context) error {
			if err := w.meet(ctx); err != nil {
				return err
			}
			done = w.round >= rounds
			w.round++
			if done || w.again || w.all(3) == 0 {
				if err := w.restore(ctx); err != nil {
					return err
				}
			}
			if done {
				return nil
			}
			return w.steps(ctx)
		})
		if err != nil && !propagated(err) && !corrupted(err) {
			return err
		}
		if done, err = ended(ctx, w.comm, done, err); err != nil {
			w.again = true
			if corrupted(err) {
				w.repair(ctx)
			}
		}
	}
	return w.st.Close(ctx)
}

// meet has all ranks know the same: an error, or a death, may have ended their last round in
// different places.
func (w *walk) meet(ctx context.Context) error {
	count := []int{w.round, w.errs, 0}
	if w.again {
		count[2] = 1
	}
	mpicx.Allreduce(w.comm, count, count, mpicx.Max).MustWait(ctx)
	w.round, w.errs, w.again = count[0], count[1]+1, count[2] > 0
	w.version = 100 * w.errs // that of a Save which was interrupted differs
	return nil
}

func (w *walk) repair(ctx context.Context) {
	repaired(ctx, w.t, w.comm, func(c *mpicx.Comm) error {
		w.comm = c
		return w.open(ctx)
	})
}

// open opens the store, or what has become of it on another communicator.
func (w *walk) open(ctx context.Context) error {
	if w.st == nil {
		st, err := checkpoint.Open(ctx, w.comm, w.opts...)
		if err == nil {
			w.st = st
			st.Protect("x", &w.x)
		}
		return err
	}
	st, err := w.st.Rejoin(ctx, w.comm)
	if err == nil {
		w.st = st
	}
	return err
}

// Whatever errors come when, all ranks restore the same version, and none that counted is
// forgotten.
func TestRandomErrors(t *testing.T) {
	seed := seedOf(t)
	options := []checkpoint.Option{checkpoint.Partner(1), checkpoint.Partner(2), checkpoint.RS(2, 1), checkpoint.RS(3, 2)}
	restores := 0
	for run := range uint64(runs(600)) {
		rnd := rand.New(rand.NewPCG(seed, run))
		n, option := 1+rnd.IntN(6), options[rnd.IntN(len(options))]
		walks := make([]*walk, n)
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			r := world.Rank()
			walks[r] = &walk{t: t, comm: world, own: rand.New(rand.NewPCG(seed+run, uint64(r))), seed: seed + run, name: r, acked: -1, failures: 3}
			return walks[r].run(ctx, 3*n+2, option)
		})
		require.False(t, t.Failed(), "run %d", run)
		restores += walks[0].restores
	}
	t.Logf("%d restores", restores)
}

// The same when ranks die: at any operation, one after the other. The data survive as many
// deaths at once as the scheme does, and as many again once the repair is over.
func TestRandomDeaths(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	seed := seedOf(t)
	deaths := 0
	for run := range uint64(runs(600)) {
		rnd := rand.New(rand.NewPCG(seed, run))
		n, m := 3+rnd.IntN(4), 1+rnd.IntN(2)
		option := checkpoint.RS(1+rnd.IntN(2), m)
		plan := fmt.Sprintf("kill %d at operation %d", rnd.IntN(n), 1+rnd.IntN(400))
		if m == 2 {
			plan = fmt.Sprintf("kill any 2 random seed %d of 400", rnd.Uint64()>>32)
		}
		failures := rnd.IntN(3)
		killed := mpicxtest.RunFaults(t, n, plan, func(ctx context.Context, world *mpicx.Comm) error {
			r := world.Rank()
			w := &walk{t: t, comm: world, own: rand.New(rand.NewPCG(seed+run, uint64(r))), seed: seed + run, name: r, acked: -1, failures: failures}
			return w.run(ctx, 8, option)
		})
		require.False(t, t.Failed(), "run %d: %d ranks, %s", run, n, plan)
		deaths += len(killed)
	}
	t.Logf("%d deaths", deaths)
}

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
