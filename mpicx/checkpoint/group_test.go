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

// survivingOrLost is surviving of a group that may lose more ranks than its scheme survives. Then
// all survivors have the same *LostError, or each has its data.
func survivingOrLost(ctx context.Context, t *testing.T, world *mpicx.Comm) (*checkpoint.LostError, error) {
	x, err := surviving(ctx, t, world, checkpoint.RS(4, 2))
	lost, isLost := errors.AsType[*checkpoint.LostError](err)
	if isLost {
		return lost, nil
	}
	if err == nil {
		require.Equal(t, value(world.Rank(), 3), x)
	}
	return nil, err
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
			for range runs(10) {
				for _, set := range sets(n) {
					killed, end := dieInGroup(t, set, deathsOf(set, rnd))
					deaths += killed
					if end != nil {
						lost++
					}
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
	killed := mpicxtest.RunFaults(t, groupSize, plan, func(ctx context.Context, world *mpicx.Comm) (err error) {
		r := world.Rank()
		ends[r], err = survivingOrLost(ctx, t, world)
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
