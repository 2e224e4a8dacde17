package mpicx_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpicx/go-mpicx/mpicx"
)

// A leftCall is a call that a program begins, and does not wait for.
type leftCall struct {
	text  string
	begin func(c *mpicx.Comm)
}

// No two of them fit.
var leftCalls = []leftCall{
	{"Barrier", func(c *mpicx.Comm) { c.Barrier() }},
	{"Bcast(root 0, 1 × int)", func(c *mpicx.Comm) { mpicx.Bcast(c, []int{0}, 0) }},
	{"Reduce(Sum, root 0, 1 × int)", func(c *mpicx.Comm) { mpicx.Reduce(c, []int{0}, []int{0}, mpicx.Sum, 0) }},
	{"Reduce(Sum, root 1, 1 × int)", func(c *mpicx.Comm) { mpicx.Reduce(c, []int{0}, []int{0}, mpicx.Sum, 1) }},
	{"Allreduce(Sum, 1 × int)", func(c *mpicx.Comm) { mpicx.Allreduce(c, []int{0}, []int{0}, mpicx.Sum) }},
	{"Allreduce(Max, 1 × int)", func(c *mpicx.Comm) { mpicx.Allreduce(c, []int{0}, []int{0}, mpicx.Max) }},
	{"GatherValue(root 0)", func(c *mpicx.Comm) { mpicx.GatherValue(c, "a", 0) }},
	{"Dup", func(c *mpicx.Comm) { c.Dup() }},
}

// M3: different calls are reported even if nobody waits for either. With ulfm, ranks agree on a duplicate without those
// that have returned.
func TestMismatchOfCallsThatAreLeft(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		calls := leftCalls
		if strings.HasSuffix(t.Name(), "ulfm") {
			calls = calls[:len(calls)-1]
		}
		for _, n := range []int{2, 3, 5} {
			for i, zero := range calls {
				for j, others := range calls {
					err := mpicx.Run(context.Background(), func(_ context.Context, world *mpicx.Comm) error {
						if world.Rank() == 0 {
							zero.begin(world)
						} else {
							others.begin(world)
						}
						return nil
					}, mpicx.WithRanks(n), backend)
					if i == j {
						assert.NoError(t, err)
					} else if assert.Error(t, err, "%s and %s, %d ranks", zero.text, others.text, n) {
						assert.ErrorContains(t, err, zero.text+" at rank 0, "+others.text+" at rank")
					}
				}
			}
		}
	})
}
