package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// A signalled is the cause of a context that signal.NotifyContext has ended.
type signalled struct{}

func (signalled) Error() string        { return "terminated signal received" }
func (signalled) Is(target error) bool { return target == context.Canceled }

// A signal ends the context of all ranks, at any moment: all return its cause, from an inner level
// too. Nobody begins another attempt, and nobody continues alone.
func TestSignalEndsAllRanks(t *testing.T) {
	for i := range 4 * 25 * 2 {
		n, at, nested := 1+i%4, int64(i/4%25), i >= 100
		var begin sync.Once
		var signal context.Context // of all ranks
		var end context.CancelCauseFunc
		var calls atomic.Int64
		errs := make([]error, n)
		work := func(ctx context.Context, a *recovery.Attempt) error {
			require.Zero(t, a.N, "another attempt begins")
			for x, y := []int{1}, []int{0}; ; {
				if calls.Add(1) == 1+at {
					end(signalled{})
				}
				mpicx.Allreduce(a.Comm, x, y, mpicx.Sum).MustWait(ctx)
				if n == 1 && signal.Err() != nil {
					return context.Cause(signal) // with nobody to wait for, no Wait looks at its context
				}
			}
		}
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			begin.Do(func() { signal, end = context.WithCancelCause(ctx) })
			errs[world.Rank()] = recovery.Run(signal, world, func(ctx context.Context, a *recovery.Attempt) error {
				if !nested {
					return work(ctx, a)
				}
				inner := a.Comm.Dup().MustGet(ctx)
				return recovery.Run(ctx, inner, work, recovery.Shrink())
			}, recovery.Replace(), recovery.ElseShrink())
			return nil
		})
		for _, err := range errs {
			require.Equal(t, signalled{}, err, "%d ranks, at %d, nested %v", n, at, nested)
		}
	}
}

// After an error that another attempt would meet again, there is no second attempt, no matter which
// rank has the error.
func TestHopeless(t *testing.T) {
	const n = 3
	for _, hopeless := range []error{
		&checkpoint.LostError{Version: 2, Ranks: []int{1}},
		&fs.PathError{Op: "open", Path: "/var/x", Err: fs.ErrPermission},
	} {
		for from, at := range map[string][]int{"rank 0": {0}, "rank 2": {2}, "ranks 0-2": {0, 1, 2}} {
			var rs records
			mpicxtest.Run(t, n, rs.run(func(ctx context.Context, a *recovery.Attempt) error {
				if slices.Contains(at, a.Comm.Rank()) {
					return fmt.Errorf("restoring: %w", hopeless)
				}
				return a.Comm.Barrier().Wait(ctx)
			}))
			end := rs.agree(t)
			require.Equal(t, []int{0}, end.ns())
			require.EqualError(t, end.err, fmt.Sprintf("recovery: given up after 1 attempts: mpicx: error propagated from %s: restoring: %v", from, hopeless))
			require.ErrorIs(t, rs.of(at[0]).err, hopeless)
		}
	}
}

// What has ended an inner level is for the outer one to mend: it makes another.
func TestHopelessBelow(t *testing.T) {
	var rs records
	mpicxtest.Run(t, 3, rs.run(func(ctx context.Context, a *recovery.Attempt) error {
		inner := a.Comm.Dup().MustGet(ctx)
		return recovery.Run(ctx, inner, func(ctx context.Context, in *recovery.Attempt) error {
			if a.N < 2 {
				return []error{&checkpoint.LostError{Version: 1, Ranks: []int{0}}, in.GiveUp(errors.New("enough"))}[a.N]
			}
			return in.Comm.Barrier().Wait(ctx)
		})
	}))
	end := rs.agree(t)
	require.NoError(t, end.err)
	require.Equal(t, []int{0, 1, 2}, end.ns())
}

// Each rank finds the error with which it gave up, even if it was told of another's before, and
// each text is said once.
func TestGiveUpAfterAnother(t *testing.T) {
	failed, mine := errors.New("failed"), errors.New("enough")
	for name, giveUp := range map[string]func(a *recovery.Attempt, told error) error{
		"returned":       func(a *recovery.Attempt, _ error) error { return a.GiveUp(mine) },
		"wrapped":        func(a *recovery.Attempt, told error) error { return a.GiveUp(fmt.Errorf("%w: %w", mine, told)) },
		"joined":         func(a *recovery.Attempt, told error) error { return errors.Join(told, a.GiveUp(mine)) },
		"thrown":         func(a *recovery.Attempt, _ error) error { mpicx.Throw(a.GiveUp(mine)); return nil },
		"not without me": func(a *recovery.Attempt, told error) error { return told },
	} {
		t.Run(name, func(t *testing.T) {
			var rs records
			mpicxtest.Run(t, 2, rs.run(func(ctx context.Context, a *recovery.Attempt) error {
				if a.N > 0 { // where the other's error was one round, and this rank's the next
					return a.Comm.Barrier().Wait(ctx)
				}
				if a.Comm.Rank() == 0 {
					return a.GiveUp(failed)
				}
				return giveUp(a, a.Comm.Barrier().Wait(ctx))
			}))
			require.ErrorIs(t, rs.of(0).err, failed)
			require.Equal(t, name != "not without me", errors.Is(rs.of(1).err, mine))
			for r, text := range []string{"failed", "failed", "enough"} {
				require.LessOrEqual(t, strings.Count(rs.of(r%2).err.Error(), text), 1, "%v", rs.of(r%2).err)
			}
		})
	}
}
