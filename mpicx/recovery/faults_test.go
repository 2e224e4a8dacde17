package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// A record is what one rank has seen in Run.
type record struct {
	rank, incarnation int
	attempts          []recovery.Attempt
	returned          bool
	err               error
}

func (r *record) ns() (ns []int) {
	for _, a := range r.attempts {
		ns = append(ns, a.N)
	}
	return ns
}

func (r *record) last() recovery.Attempt { return r.attempts[len(r.attempts)-1] }

// records are those of all ranks that have come.
type records struct {
	mu  sync.Mutex
	all []*record
}

// run is a program that has fn called in Run.
func (rs *records) run(fn func(context.Context, *recovery.Attempt) error, opts ...recovery.Option) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, world *mpicx.Comm) error {
		mine := &record{rank: world.Rank(), incarnation: world.Incarnation()}
		rs.mu.Lock()
		rs.all = append(rs.all, mine)
		rs.mu.Unlock()
		mine.err = recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
			mine.attempts = append(mine.attempts, *a)
			return fn(ctx, a)
		}, opts...)
		mine.returned = true
		return nil
	}
}

// of returns the record of a rank that was there from the start.
func (rs *records) of(rank int) *record {
	return rs.all[slices.IndexFunc(rs.all, func(r *record) bool { return r.rank == rank && r.incarnation == 0 })]
}

// text contains everything about an attempt in which the ranks have to agree.
func text(a recovery.Attempt) string {
	return fmt.Sprint(a.Comm, a.Comm.Size(), a.N, a.Cause, a.Causes, a.Replaced, a.Gone)
}

// agree checks that ranks that were in the same attempt saw the same, that each was in
// all that came after its first, and that all have ended alike.
func (rs *records) agree(t *testing.T) (end *record) {
	t.Helper()
	seen := make(map[string]string)
	for _, r := range rs.all {
		since := ""
		if len(r.attempts) > 0 && len(r.attempts[0].Replaced) == r.attempts[0].Comm.Size() {
			since = fmt.Sprint(" since ", r.attempts[0].Comm) // nobody was left who could tell
		}
		for i, a := range r.attempts {
			require.Equal(t, r.attempts[0].N+i, a.N, "rank %d, incarnation %d", r.rank, r.incarnation)
			require.Equal(t, r.incarnation > 0, a.Joined)
			if r.incarnation == 0 {
				require.Equal(t, r.rank, a.Place(a.Comm.Rank()))
			}
			key := fmt.Sprint(a.N, since)
			s, known := seen[key]
			if !known {
				seen[key] = text(a)
			} else {
				require.Equal(t, s, text(a), "attempt %d of rank %d, incarnation %d", a.N, r.rank, r.incarnation)
			}
		}
		if !r.returned {
			continue
		}
		if end == nil {
			end = r
		}
		require.Equal(t, fmt.Sprint(end.err), fmt.Sprint(r.err), "end of rank %d, incarnation %d", r.rank, r.incarnation)
		require.Equal(t, text(end.last()), text(r.last()))
	}
	return end
}

// ring is a piece of work with messages and collectives.
func ring(ctx context.Context, c *mpicx.Comm) error {
	n, me := c.Size(), c.Rank()
	got, sum := []int{-1}, []int{0}
	recv := mpicx.Recv(c, got, (me+n-1)%n, 1)
	mpicx.Send(c, []int{me}, (me+1)%n, 1).MustWait(ctx)
	recv.MustWait(ctx)
	mpicx.Allreduce(c, got, sum, mpicx.Sum).MustWait(ctx)
	if sum[0] != n*(n-1)/2 {
		return fmt.Errorf("sum %d of %d ranks", sum[0], n)
	}
	return nil
}

// once is a program in which the first rank fails once.
func once() func(context.Context, *recovery.Attempt) error {
	var failed atomic.Bool
	return func(ctx context.Context, a *recovery.Attempt) error {
		if err := ring(ctx, a.Comm); err != nil {
			return err
		}
		if a.Place(a.Comm.Rank()) == 0 && failed.CompareAndSwap(false, true) {
			return errors.New("once")
		}
		return ring(ctx, a.Comm)
	}
}

// byPlan runs the program with n ranks and k spares, and returns how many died.
func byPlan(t *testing.T, n, k int, plan string) int {
	t.Helper()
	var rs records
	opts := []recovery.Option{recovery.Shrink()}
	if k > 0 {
		opts = []recovery.Option{recovery.Replace(), recovery.ElseShrink()}
	}
	killed := mpicxtest.RunFaults(t, n, plan, rs.run(once(), opts...), mpicx.WithSpares(k))
	rs.agree(t)
	unfinished := 0
	for _, r := range rs.all {
		if !r.returned {
			unfinished++
			continue
		}
		require.NoError(t, r.err, "rank %d, incarnation %d, plan %q", r.rank, r.incarnation, plan)
		require.NotEmpty(t, r.attempts)
	}
	require.LessOrEqual(t, unfinished, len(killed))
	if t.Failed() {
		t.Fatalf("%d ranks, %d spares, plan %q", n, k, plan)
	}
	return len(killed)
}

// protocols are those of the error channel.
var protocols = []string{"revoke", "resolve", "agree", "shrink", "replace", "end"}

// A rank dies at each of its operations, and before each of its messages of the error channel;
// so do two.
func TestDeathAnywhere(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for n := 1; n <= 4; n++ {
		for k := 0; k <= 2; k++ {
			for victim := range n + k {
				t.Run(fmt.Sprintf("n%dk%dvictim%d", n, k, victim), func(t *testing.T) {
					t.Logf("%d moments", oneDies(t, n, k, victim)+twoDie(t, n, k, victim))
				})
			}
		}
	}
}

// oneDies has the victim die, and returns at how many moments.
func oneDies(t *testing.T, n, k, victim int) (moments int) {
	places := []string{"at operation"}
	for _, p := range protocols {
		places = append(places, "in "+p+" message")
	}
	for _, place := range places {
		for at := 1; byPlan(t, n, k, fmt.Sprintf("kill %d %s %d", victim, place, at)) == 1; at++ {
			moments++
		}
	}
	return moments
}

// twoDie has another rank die while others recover from the death of the victim, and returns how
// often that was at an operation.
func twoDie(t *testing.T, n, k, victim int) (moments int) {
	if n+k == 1 || buildtags.Race || testing.Short() && n+k > 4 {
		return 0
	}
	for second := range n + k {
		for first := 1; second != victim && first < 60; first += 7 {
			kill := fmt.Sprintf("kill %d at operation %d; kill %d ", victim, first, second)
			for i := range 3 * len(protocols) {
				byPlan(t, n, k, kill+fmt.Sprintf("in %s message %d", protocols[i/3], 1+i%3))
			}
			for at := 3; byPlan(t, n, k, kill+fmt.Sprintf("at operation %d", at)) == 2; at += 5 {
				moments++
			}
		}
	}
	return moments
}

// Where nobody can continue after a death, each rank has one error, which says so once.
func TestDeathThatNothingRepairs(t *testing.T) {
	if ulfm || runtime.GOOS == "windows" {
		t.Skip("the others go on, or no ranks are processes")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLosingProcesses$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), "MPICX_TEST_LOSING=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	said := regexp.MustCompile(`rank \d: mpicx: communicator corrupted by rank 1: its process has died; [^:]*\n`)
	require.Len(t, said.FindAll(out, -1), 2, "%s", out)
}

func TestLosingProcesses(t *testing.T) {
	if os.Getenv("MPICX_TEST_LOSING") == "" {
		t.Skip("only TestDeathThatNothingRepairs runs it")
	}
	mpicxtest.RunProcesses(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
			a.Comm.Barrier().MustWait(ctx)
			if a.Comm.Rank() == 1 {
				inject.Die(world)
			}
			return a.Comm.Barrier().Wait(ctx)
		}, recovery.Replace(), recovery.ElseShrink())
	})
}
