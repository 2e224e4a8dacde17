package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Whenever a rank of the analysis dies, all that live end alike: with an error if there is no
// intercommunicator yet, and else, the solver as well, with a result.
func TestTheAnalysisDies(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	step := 1
	if testing.Short() {
		step = 4
	}
	for r := solvers; r < solvers+2; r++ {
		ended := 0 // jobs with a result
		for k := 1; ; k += step {
			plan := fmt.Sprintf("kill %d at operation %d", r, k)
			errs := make([]error, solvers+2)
			killed := mpicxtest.RunFaults(t, len(errs), plan, func(ctx context.Context, world *mpicx.Comm) error {
				errs[world.Rank()] = program(ctx, world)
				return nil
			})
			if errs[0] == nil {
				ended++
			}
			for rank, err := range errs[:solvers] {
				require.Equal(t, errs[0] == nil, err == nil, "%s: rank %d: %v", plan, rank, err)
			}
			if len(killed) == 0 {
				break
			}
		}
		require.NotZero(t, ended)
	}
}
