package recovery_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/internal/exampletest"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// Rank 1 dies in the first attempt, and there is no spare: the others continue without it.
func ExampleElseShrink() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
			if a.N == 0 && a.Comm.Rank() == 1 {
				inject.Die(a.Comm)
			}
			if err := a.Comm.Barrier().Wait(ctx); err != nil {
				return err
			}
			fmt.Printf("rank %d of %d: replaced %v, gone %v\n", a.Comm.Rank(), a.Comm.Size(), a.Replaced, a.Gone)
			return nil
		}, recovery.Replace(), recovery.ElseShrink())
	}, mpicx.WithRanks(3))
	// With -tags ulfm this prints, in any order:
	// rank 0 of 2: replaced [], gone [1]
	// rank 1 of 2: replaced [], gone [1]
}

// Rank 1 dies in the first attempt. A spare takes its place and joins the next one.
func ExampleReplace() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
			if a.N == 0 && a.Comm.Rank() == 1 {
				inject.Die(a.Comm)
			}
			if err := a.Comm.Barrier().Wait(ctx); err != nil {
				return err
			}
			fmt.Printf("rank %d: joined %t, replaced %v\n", a.Comm.Rank(), a.Joined, a.Replaced)
			return nil
		}, recovery.Replace())
	}, mpicx.WithRanks(3), mpicx.WithSpares(1))
	// With -tags ulfm this prints, in any order:
	// rank 0: joined false, replaced [1]
	// rank 1: joined true, replaced [1]
	// rank 2: joined false, replaced [1]
}

func TestExamplesOfDeaths(t *testing.T) {
	exampletest.Check(t, "example_deaths_test.go", map[string]func(){
		"ExampleElseShrink": ExampleElseShrink,
		"ExampleReplace":    ExampleReplace,
	})
}
