package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

const manyRanksArg = "many-ranks"

// manyRanks runs 100,000 ranks in a separate process, to measure its peak memory.
func manyRanks(c config) result {
	n := 100_000
	if c.quick {
		n = 10_000
	}
	self, err := os.Executable()
	must(err)
	start := time.Now()
	out, err := exec.Command(self, manyRanksArg, fmt.Sprint(n)).CombinedOutput()
	if err != nil {
		return result{note: fmt.Sprintf("failed: %v: %s", err, out)}
	}
	return result{samples{float64(time.Since(start))}, nil, fmt.Sprintf("%d ranks, peak %.2f GiB", n, lastPeak(string(out)))}
}

// lastPeak returns the GiB at the end of what manyRanksChild has printed.
func lastPeak(out string) (gib float64) {
	_, text, _ := strings.Cut(out[strings.LastIndex(out, "peak"):], " ")
	_, err := fmt.Sscan(text, &gib)
	must(err)
	return gib
}

// manyRanksChild runs as many ranks as the command line says: all start, leave a barrier, get an
// error that one of them signals, leave another barrier, and end. It prints each of these when all
// ranks have passed it, with the time and the peak memory.
func manyRanksChild() {
	var n int
	if len(os.Args) > 2 {
		_, err := fmt.Sscan(os.Args[2], &n)
		must(err)
	}
	start := time.Now()
	say := func(what string) {
		fmt.Printf("%-20s %8.2f s, peak %.2f GiB\n", what, time.Since(start).Seconds(), peak()/(1<<30))
	}
	var passed [4]atomic.Int64
	left := make(chan struct{}) // closed when all ranks have left the first barrier
	pass := func(stage int, what string) {
		if passed[stage].Add(1) == int64(n) {
			if say(what); stage == 1 {
				close(left)
			}
		}
	}
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		pass(0, "all have started")
		err := world.Try(ctx, func(ctx context.Context) error {
			if err := world.Barrier().Wait(ctx); err != nil {
				return err
			}
			pass(1, "left the barrier")
			if world.Rank() == n/2 {
				<-left
				return world.SignalError(ctx, 1)
			}
			return world.Barrier().Wait(ctx)
		})
		if _, ok := errors.AsType[*mpicx.PropagatedError](err); !ok {
			return fmt.Errorf("rank %d got %w", world.Rank(), err)
		}
		pass(2, "have the error")
		if err := world.Barrier().Wait(ctx); err != nil {
			return err
		}
		pass(3, "left the next barrier")
		return nil
	}, mpicx.WithRanks(n)))
	say("have ended")
}

// peak returns the peak memory of the process, in bytes: from the system or, if the system does not
// report it, from the Go runtime.
func peak() float64 {
	if f, err := os.Open("/proc/self/status"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			var kib float64
			if n, _ := fmt.Sscanf(s.Text(), "VmHWM: %f kB", &kib); n == 1 {
				return kib * 1024
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Sys)
}
