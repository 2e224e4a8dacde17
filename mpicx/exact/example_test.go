package exact_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/exact"
)

// The sum does not depend on the order of its terms.
func ExampleSum() {
	for _, x := range [][]float64{{1e100, 1, -1e100}, {1e100, -1e100, 1}} {
		var s exact.Sum
		s.AddAll(x)
		fmt.Println(x[0]+x[1]+x[2], s.Float64())
	}
	// Output:
	// 0 1
	// 1 1
}

// The sum does not depend on the number of ranks.
func ExampleAllreduce() {
	for ranks := 1; ranks <= 3; ranks++ {
		err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
			s := make([]exact.Sum, 1)
			for i := world.Rank(); i < 10_000; i += world.Size() {
				s[0].Add(0.1)
			}
			if err := exact.Allreduce(world, s, s).Wait(ctx); err != nil {
				return err
			}
			if world.Rank() == 0 {
				fmt.Println(ranks, s[0].Float64())
			}
			return nil
		}, mpicx.WithRanks(ranks))
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 1 1000
	// 2 1000
	// 3 1000
}
