package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func stallAfter(d time.Duration) mpicx.Option {
	return hook.Option[mpicx.Option](func(s *hook.Settings) { s.Stall = d })
}

var crossing atomic.Int64 // the line where the ranks of cross wait

// cross has ranks 0 and 1 wait for each other, and others in a Barrier.
func cross(ctx context.Context, world *mpicx.Comm) error {
	_, _, line, _ := runtime.Caller(0)
	if crossing.Store(int64(line) + 4); world.Rank() > 1 {
		return world.Barrier().Wait(ctx)
	}
	return mpicx.Recv(world, []int{0}, 1-world.Rank(), 7).Wait(ctx)
}

// A stall is told once, and what is none is not, though ranks wait for longer.
func TestStall(t *testing.T) {
	oneProcess(t)
	const (
		told  = "mpicx: all ranks of world wait, and none has moved for 10 s:\n"
		ranks = "  rank 0: Recv from rank 1, tag 7 on world\n  rank 1: Recv from rank 0, tag 7 on world\n"
		first = "  the first that differs is rank 1\n"
	)
	for name, test := range map[string]struct {
		program func(ctx context.Context, world *mpicx.Comm) error
		want    string
	}{
		"cross": {cross, told + ranks + first},
		"one has returned": {func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 0 {
				world.Barrier()
				return nil
			}
			return cross(ctx, world)
		}, told + "  rank 0: returned, waits for what it has begun: Barrier #1 on world\n  rank 1: Recv from rank 0, tag 7 on world\n" + first +
			"  ● call 1 of world: Barrier at rank 0 | none at rank 1\n"},
		"one has died": {func(ctx context.Context, world *mpicx.Comm) error {
			world.SetErrhandler(mpicx.ErrorsReturn)
			if world.Rank() == 2 {
				mpicxtest.Die(world)
			}
			return cross(ctx, world)
		}, told + ranks + "  rank 2: dead\n" + first},
		"one computes": {func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				time.Sleep(time.Minute)
			}
			return world.Barrier().Wait(ctx)
		}, ""},
		"a message every 3 s": {func(ctx context.Context, world *mpicx.Comm) error {
			for range 20 {
				if world.Rank() == 0 {
					time.AfterFunc(3*time.Second, func() { mpicx.Send(world, []int{0}, 0, 7) })
					mpicx.Recv(world, []int{0}, 0, 7).MustWait(ctx)
				}
				mpicx.Bcast(world, []int{0}, 0).MustWait(ctx)
			}
			return nil
		}, ""},
		"Waits with deadlines": {func(ctx context.Context, world *mpicx.Comm) error {
			f := mpicx.Recv(world, []int{0}, 1-world.Rank(), 7)
			for range 20 {
				soon, cancel := context.WithTimeout(ctx, 3*time.Second)
				_ = f.Wait(soon)
				cancel()
			}
			return nil
		}, ""},
		"five times": {func(ctx context.Context, world *mpicx.Comm) error {
			for range 5 {
				time.AfterFunc(time.Minute, func() { mpicx.Send(world, []int{0}, 1-world.Rank(), 7) })
				_ = cross(ctx, world)
			}
			return nil
		}, strings.Repeat(told+ranks+first, 3)},
	} {
		opts := []mpicx.Option{mpicx.WithRanks(2)}
		if name == "one has died" {
			opts = []mpicx.Option{mpicx.WithRanks(3), hook.Backend[mpicx.Option]("ulfm")}
		}
		synctest.Test(t, func(t *testing.T) {
			var out printed
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Hour, cancel)
			_ = mpicx.Run(ctx, test.program, append(opts, diagnosesTo(&out), stallAfter(10*time.Second))...)
			require.Equal(t, test.want, strings.ReplaceAll(untimed(out.String()), fmt.Sprintf(" at stall_test.go:%d", crossing.Load()), ""), name)
		})
	}
}

// With WithDeadlockError all ranks get an error, and continue. One of them has raised it.
func TestDeadlockError(t *testing.T) {
	const want = "mpicx: error propagated from rank %d: mpicx: all ranks wait, and none has moved for %s: rank 0: Recv from rank 1, tag 7 on world at stall_test.go:%d; rank 1: "
	// program returns whether this rank has raised the first error.
	program := func(ctx context.Context, world *mpicx.Comm, after string) (raised bool) {
		var err error
		mpicx.Throw(world.Try(ctx, func(ctx context.Context) error {
			err = world.Try(ctx, func(ctx context.Context) error { return cross(ctx, world) })
			return nil
		}))
		failed, _ := errors.AsType[*mpicx.PropagatedError](err)
		require.ErrorContains(t, err, fmt.Sprintf(want, failed.Failures[0].Rank, after, crossing.Load()))
		for range 3 {
			require.ErrorContains(t, cross(ctx, world), ", epoch ")
		}
		world.Barrier().MustWait(ctx)
		d, raised := errors.AsType[*mpicx.DeadlockError](err)
		require.True(t, !raised || len(d.Diagnosis.Groups) >= 3 && failed.Failures[0].Rank == world.Rank())
		return raised
	}
	var out printed
	opts := []mpicx.Option{mpicx.WithDeadlockError(), stallAfter(2 * time.Second), diagnosesTo(&out)}
	for _, more := range [][]mpicx.Option{nil, {mpicx.WithSpares(1)}} {
		jobs(t, 3, func(err error) { require.NoError(t, err) }, func(ctx context.Context, world *mpicx.Comm) error {
			require.Equal(t, world.Rank() == 0, program(ctx, world, "2 s"))
			return nil
		}, append(more, opts...)...)
	}
	require.Equal(t, 12, strings.Count(out.String(), "none has moved for 2 s"))
	t.Setenv("MPICX_DIAGNOSE", "off")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		require.ErrorIs(t, mpicx.Run(ctx, cross, append(opts, mpicx.WithRanks(2))...), context.Canceled)
	})
	t.Setenv("MPICX_DIAGNOSE", "")
	raised := 0
	for _, p := range mpicxtest.RunProcesses(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		mpicxtest.Hand(program(ctx, world, "0.5 s"))
		return nil
	}, mpicx.WithDeadlockError(), stallAfter(time.Second/2)) {
		raised += strings.Count(fmt.Sprint(mpicxtest.ValuesOf[bool](t, p)), "true")
	}
	require.Equal(t, 1, raised)
}

// The error comes from a rank whose program runs, on a communicator that works.
func TestDeadlockErrorComesFrom(t *testing.T) {
	oneProcess(t)
	for name, program := range map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"a rank that has not returned": func(ctx context.Context, world *mpicx.Comm) error {
			return mpicx.Recv(world, []int{0}, 1+world.Rank()%3, 7).Wait(ctx)
		},
		"a rank that has shrunk the world": func(ctx context.Context, world *mpicx.Comm) error {
			if err := world.Guard(ctx, fails(world, 1, errors.New("lost"))); world.Rank() == 1 {
				return err
			}
			small := world.Shrink().MustGet(ctx)
			mpicx.Throw(world.Close(ctx)) // it was the largest
			return cross(ctx, small)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				if world.Rank() == 0 {
					return nil
				}
				return program(ctx, world)
			}, mpicx.WithRanks(4), hook.Backend[mpicx.Option]("ulfm"), mpicx.WithDeadlockError(), stallAfter(time.Second), diagnosesTo(io.Discard))
			_, is := errors.AsType[*mpicx.DeadlockError](err)
			require.True(t, is, "%s: %v", name, err)
		})
	}
}

// A rank that has not moved for nearly as long says so when another process asks.
func TestAnswerOfStall(t *testing.T) {
	oneProcess(t)
	synctest.Test(t, func(t *testing.T) {
		mpicx.Throw(mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			begin := time.Now()
			at := func(tenths int, want string) {
				time.Sleep(time.Until(begin.Add(time.Duration(tenths) * time.Second / 10)))
				require.Contains(t, mpicx.AnswerOfStall(world), want)
			}
			go func() {
				at(70, "moves")
				at(97, "Recv from rank 0, tag 7 on world at stall_test.go:")
				at(99, "moves") // a Wait has begun
			}()
			f := mpicx.Recv(world, []int{0}, 0, 7)
			for _, end := range []int{98, 110} {
				soon, cancel := context.WithDeadline(ctx, begin.Add(time.Duration(end)*time.Second/10))
				_ = f.Wait(soon)
				at(end, "moves") // it computes
				cancel()
			}
			return nil
		}, mpicx.WithRanks(1), stallAfter(10*time.Second)))
	})
}
