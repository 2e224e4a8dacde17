package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/mpicx/go-mpicx/internal/observe"
)

func main() { os.Exit(trace(os.Args[1:], os.Stdout, os.Stderr)) }

// The exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
)

// trace is the program, apart from its process.
func trace(args []string, stdout, stderr io.Writer) int {
	var o struct {
		json, svg       string
		job, run, error int
	}
	fs := flag.NewFlagSet("mpicxtrace", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintln(stderr, "Usage: mpicxtrace [flags] directory\n\nPrints and draws what mpicx.WithTimeline, or MPICX_TIMELINE, has recorded in the directory.")
		fs.PrintDefaults()
	}
	fs.StringVar(&o.json, "o", "", "write a trace for ui.perfetto.dev and chrome://tracing to `FILE`")
	fs.StringVar(&o.svg, "svg", "", "draw an error and what became of it to `FILE`")
	fs.IntVar(&o.job, "job", 0, "which job of the directory, from 1 (default the last)")
	fs.IntVar(&o.run, "run", 0, "which Run of its processes, from 1 (default the last with an error)")
	fs.IntVar(&o.error, "error", 0, "which error to draw, as the text numbers them (default the first that was repaired, or 1)")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage
	}
	usage := func(format string, args ...any) int {
		fmt.Fprintf(stderr, "mpicxtrace: "+format+"\n", args...)
		return exitUsage
	}
	failed := func(err error) int {
		fmt.Fprintln(stderr, "mpicxtrace:", err)
		return exitFailed
	}
	if fs.NArg() != 1 {
		return usage("%d arguments, expected one directory", fs.NArg())
	}
	files, err := observe.ReadTimelines(fs.Arg(0))
	if err != nil {
		return failed(err)
	}
	jobs := jobsOf(files)
	if len(jobs) == 0 {
		return failed(fmt.Errorf("the files in %s have no events: no rank has begun", fs.Arg(0)))
	}
	if o.job = cmp.Or(o.job, len(jobs)); o.job < 1 || o.job > len(jobs) {
		return usage("-job %d, expected 1 to %d", o.job, len(jobs))
	}
	job := jobs[o.job-1]
	r, err := choose(job, o.run)
	if err != nil {
		return usage("%v", err)
	}
	if runs := job.runs; len(jobs) > 1 || len(runs) > 1 {
		fmt.Fprintf(stdout, "job %d of %d, run %d of %d: ", o.job, len(jobs), r.number, runs[len(runs)-1])
	}
	if err := writeText(stdout, r); err != nil {
		return failed(err)
	}
	if o.json != "" {
		err = write(o.json, func(w io.Writer) error { return writeChrome(w, r) })
	}
	if o.svg != "" && err == nil {
		all := r.incidents()
		if o.error == 0 {
			o.error = 1 + max(0, slices.IndexFunc(all, (*incident).isRepaired))
		}
		if o.error < 1 || o.error > len(all) {
			return usage("-error %d, expected one of the %d errors that this run has", o.error, len(all))
		}
		err = write(o.svg, func(w io.Writer) error { return writeSVG(w, all[o.error-1]) })
	}
	if err != nil {
		return failed(err)
	}
	return 0
}

// choose merges a run of a job. Number 0 means the last run with an error or, if there is none,
// the last run.
func choose(j job, number int) (*run, error) {
	for _, n := range slices.Backward(j.runs) {
		if r := merge(j, n); n == number || number == 0 && len(r.incidents()) > 0 {
			return r, nil
		}
	}
	if number != 0 {
		return nil, fmt.Errorf("-run %d, expected one of %v", number, j.runs)
	}
	return merge(j, j.runs[len(j.runs)-1]), nil
}

func write(name string, do func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}
