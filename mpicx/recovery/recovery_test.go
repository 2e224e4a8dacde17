package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

var ulfm = mpicx.Backend == "ulfm"

func TestErrorsBeginTheNextAttempt(t *testing.T) {
	const n = 3
	var rs records
	var own [2]error
	mpicxtest.Run(t, n, rs.run(func(ctx context.Context, a *recovery.Attempt) error {
		if me := a.Comm.Rank(); me < 2 && a.N == me {
			own[me] = fmt.Errorf("of rank %d", me)
			if me == 0 {
				mpicx.Throw(own[me])
			}
			return own[me]
		}
		return ring(ctx, a.Comm)
	}))
	rs.agree(t)
	for r := range n {
		require.NoError(t, rs.of(r).err)
		require.Equal(t, []int{0, 1, 2}, rs.of(r).ns())
		last := rs.of(r).attempts[2]
		require.Len(t, last.Causes, 2)
		require.Equal(t, last.Causes[1], last.Cause)
		for of, cause := range last.Causes {
			require.ErrorContains(t, cause, own[of].Error())
			require.Equal(t, of == r, errors.Is(cause, own[of]), "its own error is found at its origin")
		}
		require.Nil(t, rs.of(r).attempts[0].Cause)
		require.False(t, last.Joined)
		require.Equal(t, "world", last.Comm.String())
	}
}

func TestMaxAttempts(t *testing.T) {
	for _, most := range []int{1, 3} {
		for n := 1; n <= 3; n++ {
			var rs records
			wrong := errors.New("wrong")
			mpicxtest.Run(t, n, rs.run(func(ctx context.Context, a *recovery.Attempt) error {
				if a.Comm.Rank() == n-1 {
					return wrong
				}
				return a.Comm.Barrier().Wait(ctx)
			}, recovery.MaxAttempts(most)))
			rs.agree(t)
			for r := range n {
				require.Len(t, rs.of(r).attempts, most)
				require.ErrorContains(t, rs.of(r).err, fmt.Sprintf("recovery: given up after %d attempts: mpicx: error propagated from rank %d: wrong", most, n-1))
				require.Equal(t, r == n-1, errors.Is(rs.of(r).err, wrong))
			}
		}
	}
}

// A rank that panics leaves Run with its own panic, and one whose own context ends with its cause,
// whenever that is. The others lose it: they continue, or get the corruption.
func TestARankLeaves(t *testing.T) {
	for name, leaves := range map[string]leaver{
		"panic": func(ctx context.Context) (context.Context, func(), any) { return ctx, func() { panic("boom") }, "boom" },
		"cause": func(ctx context.Context) (context.Context, func(), any) {
			ctx, cancel := context.WithCancelCause(ctx)
			why := errors.New("evicted")
			return ctx, func() { cancel(why) }, why
		},
		"deadline": func(ctx context.Context) (context.Context, func(), any) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			return ctx, func() { <-ctx.Done(); cancel() }, context.DeadlineExceeded
		},
	} {
		for place := range 4 {
			t.Run(fmt.Sprint(name, place), func(t *testing.T) { leaves.test(t, place, recovery.Shrink()) })
		}
		t.Run(name, func(t *testing.T) { leaves.test(t, 1) })
	}
}

// A leaver returns a context, a function that has its rank leave, and the error with which it
// leaves, or what it panics with.
type leaver func(context.Context) (context.Context, func(), any)

func (l leaver) test(t *testing.T, place int, opts ...recovery.Option) {
	var rs records
	var want any
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		end := func() {}
		if world.Rank() == 2 {
			ctx, end, want = l(ctx)
			defer func() {
				if why, isError := want.(error); isError {
					require.ErrorIs(t, rs.of(2).err, why)
					return
				}
				require.Equal(t, want, recover())
				require.False(t, rs.of(2).returned)
			}()
		}
		work := func(ctx context.Context, a *recovery.Attempt) error { return endAt(ctx, a, place, end) }
		return rs.run(work, opts...)(ctx, world)
	})
	for r := range 2 {
		lost := rs.of(r).err
		if ulfm && opts != nil {
			require.NoError(t, lost)
			require.Equal(t, []int{2}, rs.of(r).last().Gone)
			lost = rs.of(r).last().Cause
		}
		require.ErrorContains(t, lost, "communicator corrupted by rank 2")
		require.ErrorContains(t, lost, fmt.Sprint(want))
	}
}

// endAt calls end at rank 2: before a receive, an error, the end of the function, or a barrier in
// which it is told of another's error.
func endAt(ctx context.Context, a *recovery.Attempt, place int, end func()) error {
	ends := a.Comm.Rank() == 2
	switch {
	case place == 0 && ends:
		end()
		return mpicx.Recv(a.Comm, []int{0}, 2, 9).Wait(ctx) // what nobody sends
	case place == 1 && ends && a.N == 0:
		end()
		return errors.New("failed besides")
	case place == 2 && ends:
		end()
		return nil
	case place == 3 && ends && a.N == 0:
		whole := context.WithoutCancel(ctx)
		end()
		return a.Comm.Barrier().Wait(whole)
	case place == 3 && a.N == 0:
		return errors.New("failed elsewhere")
	}
	return ring(ctx, a.Comm)
}

func fiveRings(ctx context.Context, a *recovery.Attempt) error {
	for range 5 {
		if err := ring(ctx, a.Comm); err != nil {
			return err
		}
	}
	return nil
}

// A deadline that all ranks have passes at any moment, also while votes are counted. Either all
// ranks return nil, or none does.
func TestDeadlineAnywhere(t *testing.T) {
	succeeded := 0
	for i := range 600 {
		n := 1 + i%3
		var rs records
		var steps, end atomic.Int64
		end.Store(int64(i / 3))
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				ctx = &counting{ctx, &steps, &end, cancel}
			}
			return rs.run(fiveRings)(ctx, world)
		})
		for r := range n {
			require.Equal(t, rs.of(0).err == nil, rs.of(r).err == nil, "%d: %v, and rank %d: %v", i, rs.of(0).err, r, rs.of(r).err)
		}
		if rs.of(0).err == nil {
			succeeded++
		}
	}
	require.NotZero(t, succeeded)
	require.NotEqual(t, 600, succeeded)
	t.Logf("%d of 600 have succeeded", succeeded)
}

// counting is a context that ends when it has been looked at so often.
type counting struct {
	context.Context
	steps, end *atomic.Int64
	cancel     func()
}

func (c *counting) Done() <-chan struct{} {
	if c.steps.Add(1) == c.end.Load() {
		c.cancel()
	}
	return c.Context.Done()
}

func TestWrongArguments(t *testing.T) {
	fn := func(context.Context, *recovery.Attempt) error { return nil }
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		for want, err := range map[string]error{
			"recovery.Run: 0 attempts, expected 1 or more":                 recovery.Run(ctx, world, fn, recovery.MaxAttempts(0)),
			"recovery.Run: option 1 is nil, expected one such as Shrink()": recovery.Run(ctx, world, fn, recovery.Shrink(), nil),
			"options Replace and Shrink, expected one of them":             recovery.Run(ctx, world, fn, recovery.Shrink(), recovery.Replace()),
			"option ElseShrink without Replace":                            recovery.Run(ctx, world, fn, recovery.ElseShrink()),
			"recovery.Run: nil communicator, expected one":                 recovery.Run(ctx, nil, fn),
			"recovery.Run: nil context, expected":                          recovery.Run(nil, world, fn), //nolint:staticcheck // that is what is tested
			"recovery.Run: nil function, expected one to call":             recovery.Run(ctx, world, nil),
		} {
			require.ErrorContains(t, err, want)
			_, ok := errors.AsType[*mpicx.MPIError](err)
			require.True(t, ok)
		}
		require.NoError(t, world.Close(ctx))
		require.ErrorContains(t, recovery.Run(ctx, world, fn), "closed")
		return nil
	})
}

// A failure names the program's code, not the package's. Run logs its reaction in a line.
func TestOriginAndLog(t *testing.T) {
	var cause error
	var b strings.Builder
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, func(_ context.Context, a *recovery.Attempt) error {
			if cause = a.Cause; a.N == 0 {
				return errors.New("failed")
			}
			return nil
		}, recovery.Logger(slog.New(slog.NewTextHandler(&b, nil))))
	})
	p, ok := errors.AsType[*mpicx.PropagatedError](cause)
	require.True(t, ok)
	require.Contains(t, p.Failures[0].Origin, "TestOriginAndLog")
	require.Contains(t, b.String(), `rank=0 comm=world attempt=1 cause="mpicx: error propagated from rank 0: failed" replaced=[] gone=[]`)
	require.Equal(t, 1, strings.Count(b.String(), "\n"))
}

func TestRevoke(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const n = 3
	var rs records
	mpicxtest.Run(t, n, rs.run(func(ctx context.Context, a *recovery.Attempt) error {
		if a.N == 0 && a.Comm.Rank() == 1 {
			return a.Comm.Revoke(ctx)
		}
		return ring(ctx, a.Comm)
	}, recovery.Shrink()))
	for r := range n {
		require.NoError(t, rs.of(r).err)
		require.Equal(t, []int{0, 1}, rs.of(r).ns())
		require.ErrorContains(t, rs.of(r).attempts[1].Cause, "revoked by rank 1")
		require.Empty(t, rs.of(r).attempts[1].Gone)
	}
}

// Run can be called again on what the one before ended with, where it begins anew.
func TestSecondRun(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	const n = 3
	mpicxtest.RunWith(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		var comm *mpicx.Comm
		var again records
		if err := recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
			if comm = a.Comm; a.N == 0 && comm.Rank() == 0 {
				mpicxtest.Die(world)
			}
			return ring(ctx, comm)
		}, recovery.Replace()); err != nil {
			return err
		}
		err := again.run(func(ctx context.Context, a *recovery.Attempt) error { return ring(ctx, a.Comm) })(ctx, comm)
		require.Equal(t, []int{0}, again.all[0].ns())
		return err
	}, mpicx.WithSpares(1))
}
