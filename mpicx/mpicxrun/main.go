//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/machine"
)

func main() {
	n := flag.Int("n", runtime.NumCPU(), "`processes` to start")
	flag.IntVar(n, "np", *n, "the same as -n")
	later := flag.Int("respawn", 0, "the most `processes` to start later, in the places of dead ones")
	label := flag.Bool("label", false, "begin each line of output with the rank of its process")
	grace := flag.Duration("grace", 30*time.Second, "how long processes have to end after SIGTERM or SIGINT, before they are killed; 0: any `time`")
	verbose := flag.Bool("v", false, "print the pid of each process")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "mpicxrun [-n processes] [-respawn processes] [-grace time] [-label] [-v] program [argument ...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	status, err := run(*n, *later, *grace, *label, *verbose, flag.Args())
	if err != nil {
		say(err.Error())
	}
	os.Exit(status)
}

func say(text string) { fmt.Fprintln(os.Stderr, "mpicxrun:", text) }

func run(n, later int, grace time.Duration, label, verbose bool, args []string) (status int, err error) {
	if err := machine.Fits(n, later); err != nil {
		return 2, err
	}
	if grace < 0 {
		return 2, fmt.Errorf("-grace %v, expected 0 or more", grace)
	}
	if place, err := machine.Started(); err != nil || place != nil {
		return 125, errors.New("mpicxrun has started this process: start a job inside a job without MPICXRUN_JOB in its environment")
	}
	if launcher.Nested() {
		return 125, errors.New("a launcher of MPI jobs has started this process: mpicxrun replaces mpirun on one machine, and does not run inside it")
	}
	program, err := exec.LookPath(args[0])
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127, err
	} else if err != nil {
		return 126, err
	}
	signals := machine.Signals() // from now on the job's files are removed in any case
	job, err := machine.NewJob(n, later)
	if err != nil {
		return 125, err
	}
	defer job.Close()
	job.Grace = grace
	job.Ask, _ = diagnosis.Signal().(syscall.Signal)
	if verbose {
		job.Started = func(rank, pid int) { say(fmt.Sprintf("rank %d is process %d", rank, pid)) }
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // if the reader of the output ends, the processes end, but not mpicxrun
	var out, errs output
	out.to, errs.to = os.Stdout, os.Stderr
	command := func(rank int) *exec.Cmd {
		c := exec.Command(program, args[1:]...)
		c.Args[0] = args[0]
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if label {
			c.Stdout, c.Stderr = out.writerOf(rank), errs.writerOf(rank)
			c.WaitDelay = time.Second // a child of the process may still have its output open
		}
		return c
	}
	first := command(0)
	if err := giveInput(first); err != nil {
		return 125, fmt.Errorf("the input of rank 0: %w", err)
	}
	outcomes, err := job.Run(func(rank int) *exec.Cmd {
		if rank == 0 {
			return first
		}
		return command(rank)
	}, signals, say)
	out.flush()
	errs.flush()
	if err != nil && outcomes == nil {
		return 125, err
	}
	status = machine.Status(outcomes)
	if status == 0 && cmp.Or(out.err, errs.err) != nil {
		status = 1
	}
	return status, err
}

// giveInput gives the process the standard input. The input of a terminal comes through a pipe,
// because the process is in a separate process group, which is not the terminal's.
func giveInput(c *exec.Cmd) error {
	info, err := os.Stdin.Stat()
	if err != nil {
		return nil // the standard input is closed
	}
	if info.Mode()&os.ModeCharDevice == 0 {
		c.Stdin = os.Stdin
		return nil
	}
	signal.Ignore(syscall.SIGTTIN) // a job in the background gets no input
	w, err := c.StdinPipe()
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(w, os.Stdin) // until either end is closed
		_ = w.Close()
	}()
	return nil
}
