package distributed_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/distributed"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
)

const chain = `%%MatrixMarket matrix coordinate real symmetric
% 2 on the diagonal, -1 beside it
4 4 7
1 1 2
2 1 -1
2 2 2
3 2 -1
3 3 2
4 3 -1
4 4 2
`

// Two ranks read a matrix, and solve a system with it.
func Example() {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return world.TryAll(ctx, func(ctx context.Context) error {
			a, err := distributed.Read(ctx, world, strings.NewReader(chain), "chain.mtx")
			if err != nil {
				return err
			}
			b, x := []float64{1, 1}, make([]float64, a.Rows())
			sys := krylov.System{Space: distributed.Space{Comm: world}, A: a, B: b}
			if _, err := krylov.CG(ctx, sys, x, krylov.Options{Tol: 1e-10, MaxIter: 10}); err != nil {
				return err
			}
			all := make([]float64, a.Size())
			mpicx.Gatherv(world, x, all, a.Counts(), 0).MustWait(ctx)
			if world.Rank() == 0 {
				fmt.Printf("%.3g\n", all)
			}
			return nil
		})
	}, mpicx.WithRanks(2))
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [2 3 3 2]
}
