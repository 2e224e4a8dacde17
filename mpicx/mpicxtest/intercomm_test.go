package mpicxtest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// groups divides world into two groups, its first ranks and the others, and returns a bridge.
func groups(ctx context.Context, world *mpicx.Comm, first int) (local, bridge *mpicx.Comm, remoteLeader int, err error) {
	color, remoteLeader := 0, first
	if world.Rank() >= first {
		color, remoteLeader = 1, 0
	}
	if bridge, err = world.Dup().Get(ctx); err == nil {
		local, err = world.Split(color, 0).Get(ctx)
	}
	return local, bridge, remoteLeader, err
}

// coupling records whether this rank gets the Intercomm: all ranks of both groups must agree on
// that.
func coupling(h mpicx.Errhandler) program {
	return func(ctx context.Context, world *mpicx.Comm, o *outcome) error {
		world.SetErrhandler(h)
		o.comm = "done"
		local, bridge, remoteLeader, err := groups(ctx, world, 2)
		if err != nil {
			return nil
		}
		f := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 7)
		ic, err := f.Get(ctx)
		for range 2 { // a Wait may tell of another error first
			if err != nil {
				ic, err = f.Get(ctx)
			}
		}
		o.told["made"] = fmt.Sprint(err == nil)
		if err != nil || mpicx.InterAllreduce(ic, []int{1}, []int{0}, mpicx.Sum).Wait(ctx) == nil {
			return nil
		}
		if h == mpicx.ErrorsReturn {
			err = ic.Revoke(ctx)
		}
		var small *mpicx.Intercomm
		for again := err == nil; again; again = isPropagated(err) || isCorrupted(err) {
			small, err = ic.Shrink().Get(ctx)
		}
		if err != nil {
			return fmt.Errorf("Revoke, or Shrink: %w", err)
		}
		if small.Size()+small.RemoteSize() != small.Union().Size() {
			return fmt.Errorf("%d and %d ranks of %d", small.Size(), small.RemoteSize(), small.Union().Size())
		}
		o.note("size", small.Union(), small.Union().Size())
		return nil
	}
}

// All living ranks of both groups have the Intercomm, or all have an error, whichever ranks die,
// and whenever: one rank, leaders too, and any two.
func TestIntercommUniform(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const n = 5
	for name, h := range map[string]mpicx.Errhandler{"propagating": mpicx.ErrorsPropagate, "returning": mpicx.ErrorsReturn} {
		run := coupling(h)
		moments := make([][]string, n)
		for i := range 2 * n {
			r, of := i/2, []string{"at operation", "in createintercomm message"}[i%2]
			plan := func(k int) string { return fmt.Sprintf("kill %d %s %d", r, of, k) }
			for k := 1; len(survive(t, n, plan(k), true, run)) > 0; k++ {
				moments[r] = append(moments[r], plan(k))
			}
		}
		for r := range n {
			t.Run(fmt.Sprintf("%s/%d", name, r), func(t *testing.T) {
				t.Parallel()
				seconds := slices.Concat(moments[:r]...)
				for k := range len(moments[r]) * len(seconds) {
					i, j := k/len(seconds), k%len(seconds)
					if (testing.Short() || buildtags.Race) && (i+j)%8 > 0 {
						continue
					}
					survive(t, n, moments[r][i]+"; "+seconds[j], true, run)
				}
			})
		}
	}
}
