package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/mpicx"
)

// An interrupted operation frees all its buffers and requests: after 10,000 of them, of every kind
// and size, the ranks have no request, no message that nobody receives, no pinned memory, and no
// goroutine more.
func TestInterruptedCollectivesLeaveNothing(t *testing.T) {
	rounds := 10000
	if testing.Short() || buildtags.Race {
		rounds = 2000
	}
	for _, n := range fitting(4, 2) {
		var before, after runtime.MemStats // of rank 0
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			goroutines := 0
			for i := range rounds {
				mpicx.Throw(explain(interrupted(ctx, world, i), "round %d", i))
				if i == rounds/10 {
					goroutines = runtime.NumGoroutine()
				}
				if world.Rank() == 0 && i == rounds/10 {
					runtime.GC()
					runtime.ReadMemStats(&before)
				}
			}
			world.Barrier().MustWait(ctx)
			return settled(func() error { return leftBehind(world, goroutines, rounds, &before, &after) })
		}, mpicx.WithRanks(n)))
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20), "bytes that %d rounds have left", rounds)
		require.Zero(t, mpicx.Underway(), "what the transport has")
	}
}

// leftBehind says what there is more than some rounds before. A leak does not go away; what is
// under way, also from tests before, does.
func leftBehind(world *mpicx.Comm, goroutines, rounds int, before, after *runtime.MemStats) error {
	if requests, messages := world.Held(); requests+messages > 0 {
		return fmt.Errorf("%d requests and %d messages are left", requests, messages)
	}
	if world.Rank() == 0 {
		runtime.GC()
		runtime.ReadMemStats(after)
		if grown := int64(after.HeapObjects) - int64(before.HeapObjects); grown > int64(rounds) {
			return fmt.Errorf("%d objects more after %d rounds", grown, rounds)
		}
	}
	if now := runtime.NumGoroutine(); now > goroutines+2 {
		return fmt.Errorf("%d goroutines, where there were %d", now, goroutines)
	}
	return nil
}

// settled calls check until it returns nil, or for a minute.
func settled(check func() error) (err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err = check(); err == nil {
			return nil
		}
	}
	return err
}

// interrupted has all ranks begin an operation between two and a collective one, and then a barrier;
// but one signals an error in its place, which all get.
func interrupted(ctx context.Context, world *mpicx.Comm, round int) error {
	n, me := world.Size(), world.Rank()
	signals := me == round/5%n
	next, last := (me+1)%n, (me+n-1)%n
	op, p := operations[costly[round%len(costly)]], newPart(world, n-1, []int{1, 100, 1000, 20_000}[round/len(costly)%4])
	out, in := make([]int, p.length), make([]int, p.length)
	send, recv := op.buffers(p)
	mpicx.Send(world, out, next, 1) // of these some are matched
	mpicx.Ssend(world, out, next, 3)
	if round%2 == me%2 {
		mpicx.Recv(world, in, last, 1)
	}
	if !signals || round%2 == 0 { // else nobody can have the result
		op.begin(world, p, send, recv)
	}
	var err error
	if signals {
		err = world.SignalError(ctx, round)
	} else {
		err = world.Barrier().Wait(ctx)
	}
	for _, buf := range [][]int{out, in, send, recv} { // the library's no more
		for i := range buf {
			buf[i] = 1
		}
	}
	return propagated(err, round)
}

// A rank has made a wrong call, and no Wait has reported that. Run ends the rank with the call's
// error, and the rank that waits for its message learns why it does not come.
func TestWrongCallThatNobodyWaitsFor(t *testing.T) {
	const reason = "mpicx: Send: rank 99 of world, expected 0 to 1 or ProcNull"
	var peer error
	jobs(t, 2, func(err error) {
		require.NoError(t, classIs(err, mpicx.ClassRank))
		require.ErrorContains(t, err, "nobody has waited for what ended with "+reason)
		require.ErrorContains(t, peer, reason)
	}, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			mpicx.Send(world, []int{1}, 99, 5)
		} else {
			peer = mpicx.Recv(world, []int{0}, 0, 5).Wait(ctx)
		}
		return nil
	})
}

// Run does not report a send to a rank that has returned. TestExcused of mpicxtest has more.
func TestSendToARankThatHasReturned(t *testing.T) {
	onBackends(t, 2, func(_ context.Context, _ string, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			mpicx.Ssend(world, []int{1}, 1, 5)
		}
		return nil
	})
}

// An Instance has no function that could return the error: Finalize does.
func TestWrongCallBeforeFinalize(t *testing.T) {
	oneProcess(t) // the Instance of a job of processes is that of TestMain
	i, err := mpicx.Initialize(t.Context(), mpicx.WithRanks(1))
	require.NoError(t, err)
	mpicx.Send(i.World(), []int{1}, 99, 5)
	require.ErrorContains(t, i.Finalize(t.Context()), "nobody has waited for what ended with mpicx: Send: rank 99")
}

// Goroutines that outlive the function of their Try, and communicators that the function has made.
func TestWhatOutlivesATry(t *testing.T) {
	oneProcess(t)
	for name, program := range map[string]func(context.Context, *mpicx.Comm) error{
		"the scope's end ends a Wait":          endsAWait,
		"it takes no error of the next Try":    takesNoError,
		"Close waits for nobody":               closesAlone,
		"an ancestor's error ends a Signal":    endsASignal,
		"an ancestor's error comes of a Guard": comesOfAGuard,
	} {
		t.Run(name, func(t *testing.T) { runBoth(t, 3, program) })
	}
}

var errOfRank1 = errors.New("rank 1 fails")

func endsAWait(ctx context.Context, w *mpicx.Comm) error {
	ended := make(chan error, 2)
	err := w.TryAll(ctx, func(ctx context.Context) error {
		never := mpicx.Recv(w, []int{0}, w.Rank(), 9)
		go func() { ended <- never.Wait(ctx) }()
		go func() {
			_, err := future.WaitAny(ctx, mpicx.Recv(w, []int{0}, w.Rank(), 9))
			ended <- err
		}()
		time.Sleep(time.Nanosecond) // until both wait
		return nil
	})
	return errors.Join(err, expect(<-ended, context.Canceled), expect(<-ended, context.Canceled))
}

func takesNoError(ctx context.Context, w *mpicx.Comm) error {
	var inside context.Context
	never := mpicx.Recv(w, []int{0}, w.Rank(), 9)
	mpicx.Throw(w.TryAll(ctx, func(ctx context.Context) error { inside = ctx; return nil }))
	if w.Rank() == 1 {
		return failedAt(w.TryAll(ctx, func(context.Context) error { return errOfRank1 }), 1)
	}
	untilError(w)
	_ = never.Wait(inside)
	return failedAt(w.TryAll(ctx, succeeds), 1)
}

func closesAlone(ctx context.Context, w *mpicx.Comm) error {
	var closed error
	err := w.TryAll(ctx, func(ctx context.Context) error {
		d, err := w.Dup().Get(ctx)
		switch {
		case w.Rank() == 1:
			return errOfRank1
		case err == nil:
			closed = d.Close(ctx)
		}
		return err
	})
	return first(explain(closed, "Close"), failedAt(err, 1))
}

func endsASignal(ctx context.Context, w *mpicx.Comm) error {
	err := w.TryAll(ctx, func(ctx context.Context) error {
		if w.Rank() == 1 {
			time.Sleep(time.Nanosecond) // until the others signal
			return errOfRank1
		}
		d := w.Dup().MustGet(ctx)
		return d.TryAll(ctx, func(ctx context.Context) error { return d.Signal(ctx, errors.New("of d")) })
	})
	return failedAt(err, 1)
}

func comesOfAGuard(ctx context.Context, w *mpicx.Comm) error {
	d := w.Dup().MustGet(ctx)
	err := d.Guard(ctx, func(ctx context.Context) error {
		if w.Rank() == 1 {
			time.Sleep(time.Nanosecond) // until the others wait
			return w.Signal(ctx, errOfRank1)
		}
		err := d.Barrier().Wait(ctx)
		_ = d.Barrier().Wait(ctx) // until rank 1 has left its Guard
		return err
	})
	return isA[*mpicx.PropagatedError](err)
}

// Memory does not grow with the communicators that a job has made and closed.
func TestDupAndCloseAreFlat(t *testing.T) {
	const rounds = 1000
	var opts []mpicx.Option
	if processes == nil {
		opts = append(opts, mpicx.WithRanks(4))
	}
	objects := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapObjects)
	}
	require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		before := 0
		for i := range 3 * rounds {
			if i == rounds {
				before = objects()
			}
			mpicx.Throw(world.Dup().MustGet(ctx).Close(ctx))
		}
		return settled(func() error { // some are still under way
			if grown := objects() - before; grown > 4*rounds { // one that is kept has 11
				return fmt.Errorf("%d objects more after %d rounds", grown, 2*rounds)
			}
			return nil
		})
	}, opts...))
}

// What a goroutine that outlives Run waits for ends at the latest with the job, whether it began before its rank's
// function returned, before the job's end or after.
func TestWhatOutlivesItsJob(t *testing.T) {
	signal := func(ctx context.Context, w *mpicx.Comm) error { return w.Signal(ctx, errClose) }
	for name, call := range map[string]func(context.Context, *mpicx.Comm) error{
		"Signal": signal,
		"Signal in a Try": func(ctx context.Context, w *mpicx.Comm) error {
			return w.Try(ctx, func(ctx context.Context) error { return signal(ctx, w) })
		},
		"Agree":  func(ctx context.Context, w *mpicx.Comm) error { return w.Agree(1).Wait(ctx) },
		"Dup":    func(ctx context.Context, w *mpicx.Comm) error { return first(w.Dup().Wait(ctx), errClose) },
		"Shrink": func(ctx context.Context, w *mpicx.Comm) error { return first(w.Shrink().Wait(ctx), errClose) },
	} {
		t.Run(name, func(t *testing.T) { outlivesItsJob(t, call) })
	}
}

// outlivesItsJob has goroutines make a call at about the time when the job ends.
func outlivesItsJob(t *testing.T, call func(context.Context, *mpicx.Comm) error) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		synctest.Test(t, func(t *testing.T) {
			for k := range 1000 {
				callsLate(t, k%2, backend, call)
			}
		})
	})
}

// callsLate has a goroutine of one rank do that.
func callsLate(t *testing.T, rank int, backend mpicx.Option, call func(context.Context, *mpicx.Comm) error) {
	told := make(chan error, 1)
	_ = mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == rank {
			go func() {
				defer close(told)
				yield(rand.IntN(30)) // which is about as long as a Run
				ctx, end := context.WithTimeout(context.Background(), time.Hour)
				defer end()
				told <- call(ctx, world)
			}()
		}
		yield(rand.IntN(30))
		return nil
	}, mpicx.WithRanks(2), backend)
	if err, ok := <-told; ok { // the goroutine exits if its rank, which has returned, counts as dead
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
}
