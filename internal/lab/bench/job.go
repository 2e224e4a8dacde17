package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

// out buffers a process's output until everything is measured. Otherwise mpirun would forward it
// meanwhile, on a core that the processes need.
var out = bufio.NewWriter(os.Stdout)

// rankOfJob is the program of a process under mpirun: one row of the MPI table, like c/bench.c.
// Rank 0 prints times in nanoseconds, one per line.
func rankOfJob(args []string) {
	defer out.Flush()
	row, number := args[0], 8
	if len(args) > 1 {
		number, _ = strconv.Atoi(args[1])
	}
	spares := 0
	if row == "restore" {
		spares = 1
	}
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		if f := os.Getenv("BENCH_PROFILE"); f != "" && world.Rank() == 0 {
			defer profiles(f, "")()
		}
		switch row {
		case "start":
			world.Barrier().MustWait(ctx)
			if world.Rank() == 0 {
				fmt.Fprintln(out, time.Now().UnixNano())
			}
		case "pingpong":
			jobPingPong(ctx, world, number)
		case "stream":
			jobStream(ctx, world, number)
		case "sleep": // number ms, outside of the library
			time.Sleep(time.Duration(number) * time.Millisecond)
		case "wait": // the others for rank 0
			if world.Rank() == 0 {
				time.Sleep(time.Duration(number) * time.Millisecond)
			}
			world.Barrier().MustWait(ctx)
		case "allreduce":
			jobAllreduce(ctx, world)
		case "collectives":
			return jobCollectives(ctx, world, number, args[2:])
		case "exact":
			jobExact(ctx, world, number)
		case "barrier":
			jobBarrier(ctx, world)
		case "barrier-bare":
			hook.Of(world).Bare()
			jobBarrier(ctx, world)
		case "signal":
			return jobSignals(ctx, world)
		case "told":
			return jobTold(ctx, world)
		case "agree":
			sampled(world, 31, 1, func() { world.Agree(1).MustWait(ctx) })
		case "recover":
			return jobRecover(ctx, world, number)
		case "restore":
			return jobRestore(ctx, world)
		case "krylov":
			jobKrylov(ctx, world)
		default:
			return fmt.Errorf("no row %q", row)
		}
		return nil
	}, mpicx.WithDetector(detectorOf(args)), mpicx.WithSpares(spares)))
}

// sampled prints n times of one operation; fn runs the operation the given number of times.
func sampled(world *mpicx.Comm, n, times int, fn func()) {
	for sample := -5; sample < n; sample++ { // the first ones warm up
		world.Barrier().MustWait(context.Background())
		start := time.Now()
		fn()
		if sample >= 0 && world.Rank() == 0 {
			fmt.Fprintln(out, int(time.Since(start))/times)
		}
	}
}

func jobPingPong(ctx context.Context, world *mpicx.Comm, bytes int) {
	buf := make([]byte, bytes)
	trips := 10000
	switch {
	case bytes > 100000:
		trips = 100
	case bytes > 10000:
		trips = 1000
	}
	peer := 1 - world.Rank()
	sampled(world, 21, trips, func() {
		for range trips {
			for turn := range 2 {
				if world.Rank() == turn {
					mpicx.Send(world, buf, peer, 0).MustWait(ctx)
				} else {
					mpicx.Recv(world, buf, peer, 0).MustWait(ctx)
				}
			}
		}
	})
}

// jobStream is stream in c/bench.c.
func jobStream(ctx context.Context, world *mpicx.Comm, bytes int) {
	const windows, window = 200, 64
	buf, answer := make([]byte, window*bytes), make([]byte, 4)
	pending := make([]*future.Future[mpicx.Status], window)
	sampled(world, 21, windows*window, func() {
		for range windows {
			for k := range pending {
				if part := buf[k*bytes:][:bytes]; world.Rank() == 0 {
					pending[k] = mpicx.Send(world, part, 1, 1)
				} else {
					pending[k] = mpicx.Recv(world, part, 0, 1)
				}
			}
			for _, f := range pending {
				f.MustWait(ctx)
			}
			if world.Rank() == 0 {
				mpicx.Recv(world, answer, 1, 2).MustWait(ctx)
			} else {
				mpicx.Send(world, answer, 0, 2).MustWait(ctx)
			}
		}
	})
}

// jobBarrier is osu_barrier in c/bench.c.
func jobBarrier(ctx context.Context, world *mpicx.Comm) {
	const skipped, times = 200, 1000
	for range 5 {
		var all time.Duration
		for i := range skipped + times {
			start := time.Now()
			world.Barrier().MustWait(ctx)
			if i >= skipped {
				all += time.Since(start)
			}
		}
		world.Barrier().MustWait(ctx)
		sum := []int{0}
		mpicx.Allreduce(world, []int{int(all)}, sum, mpicx.Sum).MustWait(ctx)
		if world.Rank() == 0 {
			fmt.Fprintln(out, sum[0]/(times*world.Size()))
		}
	}
}

func jobSignals(ctx context.Context, world *mpicx.Comm) (err error) {
	sampled(world, 31, 1, func() { err = errors.Join(err, signalOnce(ctx, world)) })
	return err
}

// jobTold signals an error at rank 0, on an existing communicator. Other ranks may be told of it in
// the barrier before.
func jobTold(ctx context.Context, world *mpicx.Comm) error {
	for sample := -5; sample < 31; sample++ {
		err := world.Barrier().Wait(ctx)
		start := time.Now()
		if err == nil {
			err = signalOn(ctx, world)
		} else {
			err = isSignalled(err)
		}
		if err != nil {
			return err
		}
		if sample >= 0 && world.Rank() == 0 {
			fmt.Fprintln(out, int(time.Since(start)))
		}
	}
	return nil
}

// jobRecover is recover in c/bench.c. The process that dies holds this many MiB.
func jobRecover(ctx context.Context, world *mpicx.Comm, holds int) error {
	victim := world.Size() - 1
	if world.Rank() == victim {
		defer runtime.KeepAlive(ones(holds << 17))
	}
	when, later := []int64{0}, time.Duration(world.Size())*time.Millisecond // until all others know the time
	err := world.Guard(ctx, func(ctx context.Context) error {
		in, out := []int{1}, []int{0}
		for i := range 200 {
			if i == 100 {
				if world.Rank() == victim {
					when[0] = time.Now().UnixNano()
				}
				mpicx.Bcast(world, when, victim).MustWait(ctx)
				if world.Rank() == victim {
					time.Sleep(later)
					inject.Die(world)
				}
			}
			if err := mpicx.Allreduce(world, in, out, mpicx.Sum).Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	since := func() int64 { return time.Now().UnixNano() - when[0] - int64(later) }
	times, most := []int64{since(), 0}, []int64{0, 0}
	if _, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok {
		return fmt.Errorf("got %w", err)
	}
	small, err := world.Shrink().Get(ctx)
	if err != nil {
		return err
	}
	small.Barrier().MustWait(ctx)
	times[1] = since()
	mpicx.Allreduce(small, times, most, mpicx.Max).MustWait(ctx)
	if small.Rank() == 0 {
		fmt.Fprintln(out, most[0])
		fmt.Fprintln(out, most[1])
	}
	return nil
}

// jobKrylov prints times of solves under Try, and without, in turn.
func jobKrylov(ctx context.Context, world *mpicx.Comm) {
	under, without := solves(ctx, world)
	for i := range 200 {
		for j := range 2 {
			t := under
			if (i+j)%2 != 0 {
				t = without
			}
			took := t()
			if world.Rank() == 0 {
				fmt.Fprintln(out, (i+j)%2, int(took))
			}
		}
	}
}
