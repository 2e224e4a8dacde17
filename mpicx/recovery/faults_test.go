package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// record is what one rank has seen.
type record struct {
	attempts []recovery.Attempt
	returned bool
	err      error
}

// recorded has fn called in Run, and what the rank sees put down in all.
func recorded(all []record, fn func(context.Context, *recovery.Attempt) error, opts ...recovery.Option) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, world *mpicx.Comm) error {
		mine := &all[world.Rank()]
		*mine = record{}
		mine.err = recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
			mine.attempts = append(mine.attempts, *a)
			return fn(ctx, a)
		}, opts...)
		mine.returned = true
		return nil
	}
}

// text is what ranks have to agree in, of an attempt.
func text(a recovery.Attempt) string {
	return fmt.Sprint(a.Comm, a.N, a.Causes, a.Replaced, a.Gone)
}

// agree checks that ranks that were in the same attempt saw the same, and that all
// have ended alike.
func agree(t *testing.T, all []record) {
	t.Helper()
	seen := make(map[int]string)
	var end *record
	for r := range all {
		for _, a := range all[r].attempts {
			s, known := seen[a.N]
			if !known {
				seen[a.N] = text(a)
			} else {
				require.Equal(t, s, text(a), "attempt %d of rank %d", a.N, r)
			}
		}
		if !all[r].returned {
			continue
		}
		if end == nil {
			end = &all[r]
		}
		require.Equal(t, fmt.Sprint(end.err), fmt.Sprint(all[r].err), "end of rank %d", r)
		require.Equal(t, text(end.attempts[len(end.attempts)-1]), text(all[r].attempts[len(all[r].attempts)-1]))
	}
}

// ring is a piece of work with messages and collectives.
func ring(ctx context.Context, c *mpicx.Comm) error {
	n, me := c.Size(), c.Rank()
	got, sum := []int{-1}, []int{0}
	recv := mpicx.Recv(c, got, (me+n-1)%n, 1)
	if err := mpicx.Send(c, []int{me}, (me+1)%n, 1).Wait(ctx); err != nil {
		return err
	}
	if err := recv.Wait(ctx); err != nil {
		return err
	}
	if err := mpicx.Allreduce(c, got, sum, mpicx.Sum).Wait(ctx); err != nil {
		return err
	}
	if sum[0] != n*(n-1)/2 {
		return fmt.Errorf("sum %d of %d ranks", sum[0], n)
	}
	return nil
}

// A rank dies at each of its operations, and before each of its messages of the error channel.
func TestDeathAnywhere(t *testing.T) {
	moments := []string{"at operation %d", "in revoke message %d", "in resolve message %d", "in agree message %d", "in shrink message %d", "in end message %d"}
	for n := 2; n <= 4; n++ {
		for victim := range n {
			for _, moment := range moments {
				t.Run(fmt.Sprintf("%d/%d/"+moment, n, victim, 0), func(t *testing.T) {
					for k := 1; ; k++ {
						all := make([]record, n)
						failed := make([]bool, n)
						fn := func(ctx context.Context, a *recovery.Attempt) error {
							me := a.Place(a.Comm.Rank())
							if err := ring(ctx, a.Comm); err != nil {
								return err
							}
							if me == 0 && !failed[me] {
								failed[me] = true
								return errors.New("once")
							}
							return ring(ctx, a.Comm)
						}
						killed := mpicxtest.RunFaults(t, n, fmt.Sprintf("kill %d "+moment, victim, k), recorded(all, fn, recovery.Shrink()))
						agree(t, all)
						for r := range all {
							if !slices.Contains(killed, r) {
								require.NoError(t, all[r].err, "rank %d, k %d", r, k)
								require.NotEmpty(t, all[r].attempts)
							}
						}
						if len(killed) == 0 || t.Failed() {
							t.Logf("%d moments", k-1)
							break
						}
					}
				})
			}
		}
	}
}
