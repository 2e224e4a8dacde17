package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

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

// Any two ranks of the group may die at any two moments. The spares have their data then.
func TestDeathsOfPairs(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	rnd := rand.New(rand.NewPCG(seedOf(t), 0))
	deaths := 0
	for range runs(10) {
		for _, pair := range sets(2) {
			plan := deathsOf(pair, rnd)
			killed := mpicxtest.RunFaults(t, groupSize, plan, func(ctx context.Context, world *mpicx.Comm) error {
				r := world.Rank()
				x, err := surviving(ctx, t, world, checkpoint.RS(4, 2))
				if err == nil {
					require.Equal(t, value(r, 3), x)
				}
				return err
			}, mpicx.WithSpares(2))
			require.False(t, t.Failed(), plan)
			deaths += len(killed)
		}
	}
	t.Logf("%d deaths", deaths)
	require.Positive(t, deaths)
}

// survivingOrLost is surviving of a group that may lose more ranks than its scheme survives. Then
// all survivors have the same *LostError, or each has its data.
func survivingOrLost(ctx context.Context, t *testing.T, world *mpicx.Comm) (*checkpoint.LostError, error) {
	r := world.Rank()
	x, err := surviving(ctx, t, world, checkpoint.RS(4, 2))
	lost, isLost := errors.AsType[*checkpoint.LostError](err)
	if !isLost && err == nil {
		require.Equal(t, value(r, 3), x)
	}
	if isLost {
		err = nil
	}
	return lost, err
}

// After three deaths the data are lost, or a repair between them has saved them. Which ranks have
// lost theirs is the same at all survivors and spares.
func TestDeathsOfTriples(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	rnd := rand.New(rand.NewPCG(seedOf(t), 0))
	lost := 0
	for range runs(10) {
		for _, triple := range sets(3) {
			plan := deathsOf(triple, rnd)
			var ends [groupSize]*checkpoint.LostError
			killed := mpicxtest.RunFaults(t, groupSize, plan, func(ctx context.Context, world *mpicx.Comm) (err error) {
				r := world.Rank()
				ends[r], err = survivingOrLost(ctx, t, world)
				return err
			}, mpicx.WithSpares(3))
			require.False(t, t.Failed(), plan)
			for _, e := range ends {
				require.Equal(t, ends[0], e, plan)
			}
			if e := ends[0]; e != nil {
				lost++
				require.Equal(t, triple, killed, "%v, but %v", e, plan)
				require.Subset(t, triple, e.Ranks, plan)
				require.Contains(t, []int{1, 2, 3}, e.Version, plan)
			}
		}
	}
	t.Logf("%d times lost", lost)
	require.Positive(t, lost)
}

// The same with processes that get a SIGKILL: every pair, and some triples.
func TestProcessesOfGroup(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	seed := seedOf(t)
	for n, all := range map[int][][]int{2: sets(2), 3: sets(3)} {
		for i, set := range all {
			if n == 3 && i%5 > 0 || testing.Short() && i%7 > 0 {
				continue
			}
			plan := deathsOf(set, rand.New(rand.NewPCG(seed, uint64(100*n+i))))
			t.Run(fmt.Sprint(set), func(t *testing.T) {
				processes := mpicxtest.RunProcessFaults(t, groupSize+n, plan, func(ctx context.Context, world *mpicx.Comm) error {
					lost, err := survivingOrLost(ctx, t, world)
					if err == nil && lost == nil {
						lost = new(checkpoint.LostError)
					}
					if err == nil {
						mpicxtest.Hand(lost)
					}
					return err
				}, mpicx.WithSpares(n))
				t.Log(plan)
				var ends []checkpoint.LostError
				killed := 0
				for _, p := range processes {
					if ends = append(ends, mpicxtest.ValuesOf[checkpoint.LostError](t, p)...); p.Killed {
						killed++
					}
				}
				// A process that dies when the others have ended is not replaced.
				require.GreaterOrEqual(t, len(ends), groupSize-n)
				for _, e := range ends {
					require.Equal(t, ends[0], e)
				}
				if lost := ends[0].Ranks; lost != nil {
					require.Equal(t, 3, killed)
					require.Subset(t, set, lost)
				}
			})
		}
	}
}
