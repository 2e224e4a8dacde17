package checkpoint_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// surviving is a program of some steps, each of which is saved, that replaces the dead. It checks
// what is restored, and that no version is forgotten which some rank knows to count. If the data
// are lost, it returns the *checkpoint.LostError of Restore.
func surviving(ctx context.Context, t *testing.T, comm *mpicx.Comm, opts ...checkpoint.Option) error {
	const steps = 3
	var st *checkpoint.Store
	var x []float64
	constant := []int{-1}
	acked := 0
	soft := comm.Rank() == 1 // it has an error of its own once, while a version is saved
	for repaired := true; ; {
		var lost error
		err := comm.TryAll(ctx, func(ctx context.Context) (err error) {
			lost = nil
			if repaired {
				if st, err = enter(ctx, st, comm, opts...); err != nil {
					return err
				}
				st.Protect("x", &x)
				st.Protect("constant", &constant, checkpoint.Once)
				repaired = false
			}
			v, err := st.Restore(ctx)
			switch {
			case errors.Is(err, checkpoint.ErrNone):
				v, x, constant = 0, value(comm.Rank(), 0), []int{comm.Rank()}
			case errors.As(err, new(*checkpoint.LostError)): // at all ranks: no error of one of them
				lost = err
				return nil
			case err != nil:
				return err
			}
			require.Equal(t, value(comm.Rank(), v), x)
			require.Equal(t, []int{comm.Rank()}, constant)
			known := []int{0}
			mpicx.Allreduce(comm, []int{acked}, known, mpicx.Max).MustWait(ctx)
			require.GreaterOrEqual(t, v, known[0], "a version that counted is forgotten")
			for v++; v <= steps; v++ {
				x = value(comm.Rank(), v)
				f := st.Save(ctx, v)
				x = nil
				if v == 2 && soft {
					soft = false
					return errors.New("soft")
				}
				if v == 2 {
					f.MustWait(ctx)
					acked = v
				}
			}
			return comm.Barrier().Wait(ctx)
		})
		if p := new(mpicx.PropagatedError); errors.As(err, &p) && p.Failures[0].Message == "soft" {
			continue
		}
		if err != nil && !corrupted(err) {
			return err
		}
		if allDone(ctx, comm, err == nil) {
			return cmp.Or(lost, st.Close(ctx))
		}
		for repaired = false; !repaired; {
			other, err := result(ctx, comm.Replace())
			if err == nil {
				comm, repaired = other, true
			} else if !corrupted(err) {
				return err
			}
		}
	}
}

// allDone says whether all ranks are done, as this one is or not.
func allDone(ctx context.Context, comm *mpicx.Comm, done bool) bool {
	flag := 0
	if done {
		flag = 1
	}
	for {
		all, err := result(ctx, comm.Agree(flag))
		if !corrupted(err) && !propagated(err) { // those that knew of that call it once more
			return err == nil && all == 1
		}
	}
}

// result returns how an operation ended. A Wait may have told an older error in its place (P7).
func result[T any](ctx context.Context, f *future.Future[T]) (T, error) {
	v, err := f.Get(ctx)
	if corrupted(err) || propagated(err) {
		v, err = f.Get(ctx)
	}
	return v, err
}

// A rank may die at any operation. The spare that takes its place has its data.
func TestDeathAtEveryOperation(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, scheme := range []checkpoint.Option{checkpoint.Partner(1), checkpoint.RS(2, 1)} {
		for _, rank := range []int{0, 2} {
			for k := 1; ; k++ {
				if testing.Short() && k%7 > 0 {
					continue
				}
				killed := mpicxtest.RunFaults(t, 3, fmt.Sprintf("kill %d at operation %d", rank, k), func(ctx context.Context, world *mpicx.Comm) error {
					return surviving(ctx, t, world, scheme)
				}, mpicx.WithSpares(1))
				require.False(t, t.Failed(), "rank %d at operation %d", rank, k)
				if len(killed) == 0 {
					break
				}
			}
		}
	}
}

// A lossScheme is what a scheme promises of three versions, of which the last one is restored.
type lossScheme struct {
	name     string
	option   checkpoint.Option
	n        int
	version  int
	survives [][]int
	loses    [][2][]int // the ranks that die, and those whose data are lost
}

// Each scheme survives the deaths that it promises to: everybody has his own part again, and can
// load those of the dead. If one more rank dies, all ranks get the same error, which says what is
// lost, unless the files have an older version.
func TestDeaths(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, s := range []lossScheme{
		{"partner 1", checkpoint.Partner(1), 4, 2, [][]int{{0}, {3}, {0, 2}, {1, 3}}, [][2][]int{{{0, 1}, {0, 1}}, {{1, 2, 3}, {2, 3}}}},
		{"partner 2", checkpoint.Partner(2), 6, 2, [][]int{{0, 1}, {1, 2}, {0, 2, 3, 5}}, [][2][]int{{{0, 1, 2}, {0, 1, 2}}}},
		{"RS(2, 1)", checkpoint.RS(2, 1), 6, 2, [][]int{{0}, {2}, {1, 5}}, [][2][]int{{{0, 1}, {0, 1}}, {{3, 5}, {3, 5}}}},
		{"RS(4, 2)", checkpoint.RS(4, 2), 7, 2, [][]int{{0, 1}, {2, 5}, {3, 6}}, [][2][]int{{{0, 1, 2}, {0, 1, 2}}}},
		{"RS(3, 3)", checkpoint.RS(3, 3), 6, 2, [][]int{{0, 1, 2}, {1, 3, 5}}, [][2][]int{{{2, 3, 4, 5}, {2, 3, 4, 5}}}},
		{"files", checkpoint.Dir(t.TempDir(), checkpoint.Every(2)), 4, 1, [][]int{{0, 1}}, nil}, // of 0, 1 and 2
	} {
		for _, dying := range s.survives {
			t.Run(fmt.Sprint(s.name, dying), func(t *testing.T) { lose(t, s, dying, nil) })
		}
		for _, c := range s.loses {
			t.Run(fmt.Sprint(s.name, c[0]), func(t *testing.T) { lose(t, s, c[0], c[1]) })
		}
	}
}

// lose saves versions, has ranks die, and restores among the others. Lost are the ranks whose data
// are then lost.
func lose(t *testing.T, s lossScheme, dying, lost []int) {
	mpicxtest.Run(t, s.n, func(ctx context.Context, world *mpicx.Comm) error {
		st := opened(ctx, world, s.option)
		var x []float64
		constant := []int{world.Rank()}
		st.Protect("x", &x)
		st.Protect("constant", &constant, checkpoint.Once)
		for v := range 3 {
			x = value(world.Rank(), v)
			st.Save(ctx, v).MustWait(ctx)
		}
		world.SetErrhandler(mpicx.ErrorsReturn)
		_ = world.Barrier().Wait(ctx) // some may have died behind it
		if slices.Contains(dying, world.Rank()) {
			mpicxtest.Die(world)
		}
		for _, r := range dying {
			_ = mpicx.Recv(world, []int{0}, r, 0).Wait(ctx) // which ends with its death
		}
		st, err := st.Rejoin(ctx, world.Shrink().MustGet(ctx))
		require.NoError(t, err)
		x = nil
		if lost != nil {
			isLost := &checkpoint.LostError{Version: 2, Ranks: lost}
			_, err := st.Restore(ctx)
			require.Equal(t, isLost, err)
			require.Nil(t, x)
			st, err = st.Rejoin(ctx, world.Shrink().MustGet(ctx))
			require.NoError(t, err)
			_, err = st.Restore(ctx) // after the next repair it is lost still
			require.Equal(t, isLost, err)
			return st.Close(ctx)
		}
		restores(ctx, t, st, s.version)
		require.Equal(t, value(world.Rank(), s.version), x)
		for _, r := range dying {
			loads(ctx, t, st, "x", r, s.version, value(r, s.version))
			loads(ctx, t, st, "constant", r, s.version, []int{r})
		}
		return st.Close(ctx)
	})
}

// Under ErrorsReturn the program itself repairs what a death has broken.
func TestErrorsReturn(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	mpicxtest.RunFaults(t, 4, "must kill 2 at operation 40", func(ctx context.Context, world *mpicx.Comm) error {
		world.SetErrhandler(mpicx.ErrorsReturn)
		st := opened(ctx, world)
		var x []float64
		st.Protect("x", &x)
		saved := -1
		for v := 0; ; v++ {
			x = value(world.Rank(), v)
			if st.Save(ctx, v).Wait(ctx) != nil {
				break
			}
			saved = v
		}
		mpicx.Throw(world.Revoke(ctx))
		st, err := st.Rejoin(ctx, world.Shrink().MustGet(ctx))
		mpicx.Throw(err)
		v := restored(ctx, st)
		require.GreaterOrEqual(t, v, saved)
		require.Equal(t, value(world.Rank(), v), x)
		loads(ctx, t, st, "x", 2, v, value(2, v))
		return st.Close(ctx)
	})
}

// After a Shrink ranks have other numbers. What is saved then is under these, Once variables too,
// when ranks die again.
func TestShrinkTwice(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	mpicxtest.Run(t, 4, func(ctx context.Context, comm *mpicx.Comm) error {
		st := opened(ctx, comm, checkpoint.Partner(1))
		constant, x := comm.Rank(), comm.Rank()
		st.Protect("constant", &constant, checkpoint.Once)
		st.Protect("x", &x)
		me := comm.Rank()
		for version, dies := range []int{0, 0} {
			x = 10*version + me
			st.Save(ctx, version).MustWait(ctx)
			comm, st = survive(ctx, comm, st, dies, (*mpicx.Comm).Shrink)
			constant, x = -1, -1
			restores(ctx, t, st, version)
			require.Equal(t, me, constant)
			require.Equal(t, 10*version+me, x)
			loads(ctx, t, st, "constant", dies, version, []int{version}) // the rank that has died: 0, then 1
		}
		return st.Close(ctx)
	})
}

// A rank that is replaced after a Shrink, before the next Save, restores the part of the rank whose
// place it takes, no matter which group that is in, and whether a member of it is left: else it is in
// a file. A group that is the same again sends nothing.
func TestReplaceAfterShrink(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for i := range 10 {
		dies, opts := i/2, [][]checkpoint.Option{nil, {checkpoint.Partner(0), checkpoint.Dir(t.TempDir())}}[i%2]
		mpicxtest.RunFaults(t, 6, "", func(ctx context.Context, comm *mpicx.Comm) error {
			st, x := opened(ctx, comm, opts...), comm.Rank()
			if comm.Incarnation() == 0 {
				st.Protect("x", &x)
				st.Save(ctx, 1).MustWait(ctx)
				comm, st = survive(ctx, comm, st, 0, (*mpicx.Comm).Shrink)
				sent := st.Stats().Sent
				comm, st = survive(ctx, comm, st, dies, (*mpicx.Comm).Replace)
				require.True(t, dies >= 2 || comm.Rank() < 2 || sent == st.Stats().Sent)
			}
			x = -1
			st.Protect("x", &x)
			restores(ctx, t, st, 1)
			require.Equal(t, comm.Rank()+1, x)
			return st.Close(ctx)
		}, mpicx.WithSpares(1))
	}
}

// survive has a rank die, and the others repair the communicator and rejoin the store.
func survive(ctx context.Context, comm *mpicx.Comm, st *checkpoint.Store, dies int, repair func(*mpicx.Comm) *future.Future[*mpicx.Comm]) (*mpicx.Comm, *checkpoint.Store) {
	comm.Agree(1).MustWait(ctx)
	if comm.Rank() == dies {
		mpicxtest.Die(comm)
	}
	_ = comm.Barrier().Wait(ctx) // which tells of the death
	comm, err := result(ctx, repair(comm))
	mpicx.Throw(err)
	st, err = st.Rejoin(ctx, comm)
	mpicx.Throw(err)
	return comm, st
}

// H9: a program that returns without Close, and without a Wait for its Save, does not die of the
// operations that its store has in the background.
func TestReturnsWithoutClose(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for range 10 {
		mpicxtest.RunProcesses(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
			st := opened(ctx, world, checkpoint.Partner(1))
			x := make([]float64, 1<<18)
			st.Protect("x", &x)
			st.Save(ctx, 1)
			return mpicx.Allreduce(world, []int{1}, []int{0}, mpicx.Sum).Wait(ctx)
		})
	}
}

// A group of RS(4, 2) with 6 ranks, of which some die: while it opens the store, saves, encodes,
// restores or protects again.
const (
	groupSize = 6
	moments   = 130 // operations of a rank in surviving; with repairs there are more
)

// sets returns all sets of n ranks of the group.
func sets(n int) (all [][]int) {
	for bits := range 1 << groupSize {
		var set []int
		for r := range groupSize {
			if bits>>r&1 != 0 {
				set = append(set, r)
			}
		}
		if len(set) == n {
			all = append(all, set)
		}
	}
	return all
}

// deathsOf returns a plan in which the ranks die: at moments apart, near each other, or at the same
// operation. Ranks of a group do the same number of operations up to a few.
func deathsOf(ranks []int, rnd *rand.Rand) string {
	var plan []string
	at, apart := 1+rnd.IntN(moments), []int{1, 4, 30, moments}[rnd.IntN(4)]
	for _, r := range ranks {
		plan = append(plan, fmt.Sprintf("kill %d at operation %d", r, at+rnd.IntN(apart)))
	}
	return strings.Join(plan, "; ")
}

// Any two or three ranks of the group may die at any moments. The spares have the data of two.
// After three deaths the data are lost, or a repair between them has saved them. Which ranks have
// lost theirs is the same at all survivors and spares.
func TestDeathsOfGroup(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for n := 2; n <= 3; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seedOf(t), 0))
			deaths, lost := 0, 0
			for i, all := 0, sets(n); i < runs(10)*len(all); i++ {
				set := all[i%len(all)]
				killed, end := dieInGroup(t, set, deathsOf(set, rnd))
				deaths += killed
				if end != nil {
					lost++
				}
			}
			t.Logf("%d deaths, %d times lost", deaths, lost)
			require.Positive(t, deaths)
			require.Equal(t, n == 3, lost > 0)
		})
	}
}

// dieInGroup returns how many have died by the plan, and the end of all survivors.
func dieInGroup(t *testing.T, set []int, plan string) (int, *checkpoint.LostError) {
	var ends [groupSize]*checkpoint.LostError
	killed := mpicxtest.RunFaults(t, groupSize, plan, func(ctx context.Context, world *mpicx.Comm) error {
		err := surviving(ctx, t, world, checkpoint.RS(4, 2))
		if errors.As(err, &ends[world.Rank()]) {
			return nil
		}
		return err
	}, mpicx.WithSpares(len(set)))
	require.False(t, t.Failed(), plan)
	for _, e := range ends {
		require.Equal(t, ends[0], e, plan)
	}
	if e := ends[0]; e != nil {
		require.Equal(t, set, killed, "%v, but %v", e, plan)
		require.Subset(t, set, e.Ranks, plan)
		require.Contains(t, []int{1, 2, 3}, e.Version, plan)
	}
	return len(killed), ends[0]
}
