package mpicx_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func mostFresh(n int) mpicx.Option {
	return hook.Option[mpicx.Option](func(s *hook.Settings) { s.MostFresh = n })
}

func runWithRespawn(t *testing.T, ranks, most int, fn func(ctx context.Context, world *mpicx.Comm) error) error {
	t.Helper()
	oneProcess(t)
	return mpicx.Run(t.Context(), fn, mpicx.WithRanks(ranks), mpicx.WithRespawn(), mostFresh(most), hook.Backend[mpicx.Option]("ulfm"))
}

// againAndAgain has the members die one after another, each place as often as given, and returns nil at
// full strength.
func againAndAgain(times int) func(ctx context.Context, c *mpicx.Comm) error {
	return func(ctx context.Context, c *mpicx.Comm) error {
		for {
			all, err := mpicx.AllgatherValue(c, c.Incarnation()).Get(ctx)
			switch {
			case err != nil:
				if c, err = c.Replace().Get(ctx); err != nil {
					return err
				}
			case slices.Min(all) == times:
				return nil
			case c.Rank() == slices.Index(all, slices.Min(all)):
				mpicxtest.Die(c)
			}
		}
	}
}

// A job has its full size again after more deaths than there were ranks.
func TestRespawnAgain(t *testing.T) {
	require.NoError(t, runWithRespawn(t, 3, hook.Fresh, againAndAgain(10)))
}

// What makes no sense is refused.
func TestRespawnRefused(t *testing.T) {
	oneProcess(t)
	none := func(context.Context, *mpicx.Comm) error { return nil }
	require.ErrorContains(t, mpicx.Run(t.Context(), none, mpicx.WithRespawn(), mpicx.WithSpares(2)), "WithRespawn and WithSpares(2)")
	require.NoError(t, mpicx.Run(t.Context(), none, mpicx.WithRespawn(), hook.Backend[mpicx.Option]("blackchannel")))
}

// Whoever dies at whatever message: the survivors and the fresh ranks agree on who they are.
func TestRespawnAtEveryMessage(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for n := 1; n <= 3; n++ {
		for victim := range n + 2 {
			t.Run(fmt.Sprintf("n%dvictim%d", n, victim), func(t *testing.T) {
				for _, second := range []string{"", "; kill %d in replace message 1", "; kill %d in resolve message 1"} {
					for at := 1; ; at++ {
						plan := fmt.Sprintf("kill %d at operation %d", victim, at)
						if n == 1 && victim > 0 {
							break // nobody can start it
						}
						if second != "" {
							plan += fmt.Sprintf(second, (victim+1)%(n+2))
						}
						if !respawnByPlan(t, n, plan, victim) {
							break
						}
					}
				}
				for _, protocol := range []string{"replace", "resolve", "revoke", "agree", "shrink", "end"} {
					for others := range min(n, 3) { // their deaths make a Replace necessary
						for at := 1; ; at++ {
							plan := fmt.Sprintf("kill %d in %s message %d", victim, protocol, at)
							for i := range others {
								plan += fmt.Sprintf("; kill %d at operation %d", (min(victim, n-1)+1+i)%n, 3+i)
							}
							if !respawnByPlan(t, n, plan, victim) {
								break
							}
						}
					}
				}
			})
		}
	}
}

// respawnByPlan says whether victim died.
func respawnByPlan(t *testing.T, n int, plan string, victim int) bool {
	t.Helper()
	killed := mpicxtest.RunFaults(t, n, plan, recovering, mpicx.WithRespawn(), mostFresh(8))
	if t.Failed() {
		t.FailNow()
	}
	return slices.Contains(killed, victim)
}

// The same with processes that are killed.
func TestRespawnProcesses(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, plan := range []string{
		"must kill 1 at operation 5",
		"must kill 1 at operation 5; must kill 4 at operation 2; kill 5 in resolve message 1; kill 0 at operation 12",
		"must kill 0 at operation 9; must kill 4 in replace message 1",
		"must kill 1 in replace message 1; must kill 2 at operation 3",
		"must kill 1 at operation 3; must kill 2 at operation 4; must kill 3 at operation 5",
	} {
		t.Run(plan, func(t *testing.T) {
			for rank, p := range mpicxtest.RunProcessFaults(t, 4, plan, recovering, mpicx.WithRespawn()) {
				require.True(t, p.Killed || p.Status == 0, "rank %d: status %d\n%s", rank, p.Status, p.Log) // no goroutine is left
			}
		})
	}
}
