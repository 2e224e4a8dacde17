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
	return result{samples{float64(time.Since(start))}, nil, fmt.Sprintf("%d ranks, peak %s", n, strings.TrimSpace(string(out)))}
}

func manyRanksChild() {
	var n int
	if len(os.Args) > 2 {
		_, err := fmt.Sscan(os.Args[2], &n)
		must(err)
	}
	must(mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Barrier().Wait(ctx) // the error may come before a rank has left it
		switch {
		case err != nil:
		case world.Rank() == n/2:
			err = world.SignalError(ctx, 1)
		default:
			err = world.Barrier().Wait(ctx)
		}
		if _, ok := errors.AsType[*mpicx.PropagatedError](err); !ok {
			return fmt.Errorf("rank %d got %w", world.Rank(), err)
		}
		return nil
	}, mpicx.WithRanks(n)))
	fmt.Printf("%.2f GiB\n", peak()/(1<<30))
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
