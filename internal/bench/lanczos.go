package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A lanczosRun is what examples/lanczos says of a run.
type lanczosRun struct {
	Eigenvalues []float64
	Replaced    []int
	Seconds     struct{ Starting, Computing, Checkpointing, Detecting, Rebuilding, Reading, Redoing float64 }
	cpu         time.Duration // of all processes
}

// lanczosParts are the parts of a bar of Figure 4, from below.
var lanczosParts = []string{"computing", "held up by checkpoints", "detection", "rebuilding", "reading back", "redone work"}

func (r *lanczosRun) parts() []float64 {
	s := r.Seconds
	return []float64{s.Starting + s.Computing, s.Checkpointing, s.Detecting, s.Rebuilding, s.Reading, s.Redoing}
}

func (r *lanczosRun) total() (sum float64) {
	for _, p := range r.parts() {
		sum += p
	}
	return sum
}

// A lanczosJob is where examples/lanczos runs, with 4 spares.
type lanczosJob struct {
	name, figure string
	run          []string // by which command
	args         []string // of the program
	victims      []int    // whose deaths at once it survives
	programs     *programs
	undisturbed  *lanczosRun
}

// lanczosJobs are of goroutine ranks, and of processes.
func lanczosJobs(p *programs) []*lanczosJob {
	return []*lanczosJob{
		{name: "8 + 4 goroutine ranks", figure: "figure4", args: []string{"-ranks", "8"}, victims: []int{1, 3, 5}, programs: p},
		{name: "4 + 4 processes, SIGKILL", figure: "figure4-processes", run: []string{"mpicxrun", "-n", "8"}, args: []string{"-copies", "3"}, victims: []int{1, 2, 3}, programs: p},
	}
}

// A lanczosCase is a bar of Figure 4 of paper 002: 3,500 iterations, with a checkpoint every 500,
// pings, and failures in the middle between two checkpoints.
type lanczosCase struct {
	name  string
	args  []string
	kills []int // at these iterations
}

var (
	withCheckpoints = []string{"-checkpoint", "500"}
	withPings       = []string{"-checkpoint", "500", "-detector", "ping", "-period", "100ms"}
	lanczosCases    = []lanczosCase{
		{"without\nhealth check\nand checkpoints", []string{"-checkpoint", "0"}, nil},
		{"with\ncheckpoints", withCheckpoints, nil},
		{"with\nboth", withPings, nil},
		{"1 failure", withPings, []int{750}},
		{"2 failures", withPings, []int{750, 1750}},
		{"3 failures", withPings, []int{750, 1750, 2750}},
		{"3 at once", withPings, []int{750, 750, 750}},
	}
)

func lanczosRows(p *programs) (all []row) {
	for _, j := range lanczosJobs(p) {
		var base samples
		for i, c := range lanczosCases {
			all = append(all, row{what: fmt.Sprintf("Lanczos (paper 002, Figure 4), %s: %s", j.name, line(c.name)), against: line(lanczosCases[0].name), measure: func(cfg config) result {
				var runs []*lanczosRun
				var total samples
				for range cfg.times(5) {
					r := j.solve(cfg, c)
					runs, total = append(runs, r), append(total, r.total()*1e9)
				}
				if i == 0 {
					base = total
				}
				cfg.figures.addBar(j, c.name, runs)
				return result{total, base, ""}
			}})
		}
		all = append(all,
			row{what: "Lanczos with checkpoints, " + j.name + ": held up in Save", against: "the whole run", reach: 0.001, measure: func(cfg config) (r result) {
				for range cfg.times(5) {
					run := j.solve(cfg, lanczosCases[1])
					r.ours, r.theirs = append(r.ours, run.Seconds.Checkpointing*1e9), append(r.theirs, run.total()*1e9)
				}
				return r
			}},
			row{what: "Lanczos with pings, " + j.name + ": CPU time", against: "without", reach: 1.005, measure: func(cfg config) (r result) {
				cpu := func(c lanczosCase) func() time.Duration {
					return func() time.Duration { return j.solve(cfg, c).cpu }
				}
				s := inTurn(cfg.times(9), cpu(lanczosCases[2]), cpu(lanczosCases[1]))
				return result{s[0], s[1], ""}
			}})
	}
	last := lanczosJobs(p)[1]
	return append(all, row{what: "Lanczos, " + last.name + ": to the next iteration", against: "to the error, and reading back", reach: 2, measure: func(cfg config) (r result) {
		for range cfg.times(15) {
			s := last.solve(cfg, lanczosCases[3]).Seconds
			r.ours = append(r.ours, (s.Detecting+s.Rebuilding+s.Reading)*1e9)
			r.theirs = append(r.theirs, (s.Detecting+s.Reading)*1e9)
		}
		return r
	}})
}

// line is a name of several lines in one.
func line(name string) string { return strings.ReplaceAll(name, "\n", " ") }

// solve makes a run, whose eigenvalues have to be those of an undisturbed one.
func (j *lanczosJob) solve(cfg config, c lanczosCase) *lanczosRun {
	size := "400x400"
	if cfg.quick {
		size = "20x20"
	}
	args := append(append([]string{"-spares", "4", "-size", size, "-iterations", "3500", "-json"}, j.args...), c.args...)
	for i, at := range c.kills {
		args = append(args, "-kill", fmt.Sprintf("%d@%d", j.victims[i], at))
	}
	r := j.start(args)
	if len(r.Replaced) != len(c.kills) {
		panic(fmt.Sprintf("%v: ranks %v were replaced, expected %d", args, r.Replaced, len(c.kills)))
	}
	if j.undisturbed == nil {
		j.undisturbed = r
	}
	for i, e := range j.undisturbed.Eigenvalues {
		if math.Abs(e-r.Eigenvalues[i]) > 1e-10 {
			panic(fmt.Sprintf("%v: eigenvalues %v, expected %v", args, r.Eigenvalues, j.undisturbed.Eigenvalues))
		}
	}
	return r
}

func (j *lanczosJob) start(args []string) *lanczosRun {
	command := append([]string{j.programs.build("./examples/lanczos")}, args...)
	if len(j.run) > 0 {
		command = append(append([]string{j.programs.build("./mpicx/mpicxrun")}, j.run[1:]...), command...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var says strings.Builder
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		panic(fmt.Sprintf("%v: %v\n%s", command, err, says.String()))
	}
	r := &lanczosRun{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	must(json.Unmarshal(out, r))
	return r
}

// programs are built once, with -tags ulfm, into a folder of their own.
type programs struct{ folder string }

func (p *programs) build(path string) string {
	if p.folder == "" {
		var err error
		p.folder, err = os.MkdirTemp("", "bench")
		must(err)
	}
	name := filepath.Join(p.folder, filepath.Base(path))
	if _, err := os.Stat(name); err != nil {
		out, err := exec.Command("go", "build", "-tags", "ulfm", "-o", name, path).CombinedOutput()
		if err != nil {
			panic(fmt.Sprintf("go build %s: %v\n%s", path, err, out))
		}
	}
	return name
}

func (p *programs) remove() { _ = os.RemoveAll(p.folder) }
