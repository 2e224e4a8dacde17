package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program, without os.Exit.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "lanczos:", err)
		return 2
	}
	found, err := o.job(ctx, stderr)
	if err == nil && found != nil { // found only at rank 0, in one of the processes
		err = found.show(o, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "lanczos:", err)
		return 1
	}
	return 0
}

// job solves the problem on all ranks.
func (o *options) job(ctx context.Context, stderr io.Writer) (*result, error) {
	var detector mpicx.Detector = mpicx.Ring{}
	if o.detector == "ping" {
		detector = mpicx.Ping{Period: o.period}
	}
	opts := []mpicx.Option{mpicx.WithSpares(o.spares), mpicx.WithDetector(detector), mpicx.WithTimeline(o.timeline)}
	if o.respawn {
		opts = append(opts, mpicx.WithRespawn())
	}
	if o.ranks > 0 {
		opts = append(opts, mpicx.WithRanks(o.ranks))
	}
	var found atomic.Pointer[result]
	err := mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
		r, err := o.solve(ctx, world, stderr)
		if r != nil {
			found.Store(r)
		}
		return err
	}, opts...)
	return found.Load(), err
}
