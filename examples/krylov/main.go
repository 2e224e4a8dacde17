package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"

	"github.com/mpicx/go-mpicx/examples/krylov/fault"
	"github.com/mpicx/go-mpicx/examples/krylov/report"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// MPI can be initialized once per process, and this program calls mpicx.Run for each of its
	// runs. So the Instance encloses them all.
	inst, err := mpicx.Initialize(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "krylov:", err)
		os.Exit(exitFailed)
	}
	if processes, err = started(ctx, inst); err != nil {
		fmt.Fprintln(os.Stderr, "krylov:", err)
		os.Exit(exitFailed)
	}
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err := inst.Finalize(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "krylov:", err)
		code = exitFailed
	}
	os.Exit(code)
}

// started returns the number of processes with which the launcher began the job. It returns 0 if there
// is no launcher: then Run has more ranks than the Instance.
func started(ctx context.Context, inst *mpicx.Instance) (n int, err error) {
	if inst.World() == nil { // mpicxrun has started this process later
		n, err = strconv.Atoi(os.Getenv("MPICXRUN_SIZE"))
		return n, errors.Join(err, mpicx.Run(ctx, func(context.Context, *mpicx.Comm) error { return nil }))
	}
	err = mpicx.Run(ctx, func(_ context.Context, world *mpicx.Comm) error {
		if world.Rank() == inst.World().Rank() && world.Size() == inst.World().Size() {
			n = world.Size()
		}
		return nil
	})
	return n, err
}

// The exit codes.
const (
	exitConverged = 0
	exitFailed    = 1
	exitUsage     = 2
)

// run is the whole program, without os.Exit.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return exitConverged
	}
	if err != nil {
		fmt.Fprintln(stderr, "krylov:", err)
		return exitUsage
	}
	out := report.New(&cfg.Settings, processes == 0, stdout)
	outcomes, leads, err := runAll(ctx, cfg, out)
	if err != nil {
		fmt.Fprintln(stderr, "krylov:", err)
		if _, ok := errors.AsType[*setupError](err); ok {
			return exitUsage
		}
		return exitFailed
	}
	if leads {
		if last := outcomes[len(outcomes)-1]; cfg.solution != "" && last.Solution != nil {
			if err := writeVector(cfg.solution, last.Solution); err != nil {
				fmt.Fprintln(stderr, "krylov:", err)
				return exitFailed
			}
		}
		out.End(outcomes)
	}
	for _, o := range outcomes {
		if expected := cfg.Compare && o.Recovery == recoverNone; !o.Converged && !expected {
			return exitFailed
		}
	}
	return exitConverged
}

func writeVector(name string, x []float64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := sparse.WriteVector(f, x); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// runAll makes the runs of cfg. The first has no faults, for comparison.
func runAll(ctx context.Context, cfg *config, out report.Reports) (outcomes []*report.Outcome, leads bool, err error) {
	free := *cfg
	free.faults = nil
	if free.recovery == recoverNone {
		free.recovery = recoverRestart // there is nothing to recover from
	}
	configs := []*config{&free}
	names := []string{"fault-free"}
	if len(cfg.faults) > 0 {
		recoveries := []string{cfg.recovery}
		if cfg.Compare {
			recoveries = []string{recoverNone, recoverRestart, recoverRollback}
			if hasULFM && slices.ContainsFunc(cfg.faults, fault.Fault.EndsRank) {
				if processes == 0 || cfg.waiting > 0 {
					recoveries = append(recoveries, recoverReplace)
				}
				recoveries = append(recoveries, recoverShrink)
			}
		}
		for _, recovery := range recoveries {
			c := *cfg
			c.recovery = recovery
			configs, names = append(configs, &c), append(names, recovery)
		}
	}

	for i, c := range configs {
		if c.recovery == recoverNone {
			c.maxIter = boundWithoutRecovery(cfg, outcomes[0])
		}
		t := &trial{name: names[i], cfg: c, out: out, ranks: make([]*rank, c.Ranks)}
		o, err := t.run(ctx)
		if err != nil {
			return nil, false, err
		}
		outcomes = append(outcomes, o)
		leads = t.reporter() != nil // false in most processes under mpirun
		out.Ended(o, leads)
	}
	return outcomes, leads, nil
}

// boundWithoutRecovery limits the iterations of a run that may never converge.
func boundWithoutRecovery(cfg *config, free *report.Outcome) int {
	return min(cfg.maxIter, 4*free.Iterations+100)
}
