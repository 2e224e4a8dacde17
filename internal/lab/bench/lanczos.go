package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A lanczosRun is what examples/lanczos reports of a run.
type lanczosRun struct {
	Eigenvalues []float64
	Replaced    []int
	Seconds     struct{ Starting, Computing, Checkpointing, Detecting, Rebuilding, Reading, Redoing float64 }
}

// lanczosParts are the parts of a bar of Figure 4, from below.
var lanczosParts = []string{"computing", "held up by checkpoints", "detection", "rebuilding", "reading back", "redone work"}

func (r *lanczosRun) parts() []float64 {
	s := r.Seconds
	return []float64{s.Starting + s.Computing, s.Checkpointing, s.Detecting, s.Rebuilding, s.Reading, s.Redoing}
}

// String lists the parts that are not empty.
func (r *lanczosRun) String() string {
	var all []string
	for i, p := range r.parts() {
		if p > 0 {
			all = append(all, lanczosParts[i]+" "+short(p*1e9))
		}
	}
	return strings.Join(all, ", ")
}

// outage returns the nanoseconds from a death to the next iteration.
func (r *lanczosRun) outage() float64 {
	return (r.Seconds.Detecting + r.Seconds.Rebuilding + r.Seconds.Reading) * 1e9
}

func (r *lanczosRun) total() (sum float64) {
	for _, p := range r.parts() {
		sum += p
	}
	return sum
}

// A lanczosJob is a way to run examples/lanczos, with 4 spares, or fresh ranks.
type lanczosJob struct {
	name, figure string
	respawn      bool
	command      func() []string
	victims      []int                // it survives their simultaneous deaths
	undisturbed  map[string][]float64 // eigenvalues, by the size of the sheet
	cases        [][]*lanczosRun      // nil: not measured yet
}

// processesOf is the job of 4 + 4 processes that a launcher starts. Three of four may die at once,
// so there are three copies of saved data.
func processesOf(name, figure string, command func() []string) *lanczosJob {
	return &lanczosJob{name: "4 + 4 processes, SIGKILL, " + name, figure: figure, victims: []int{1, 2, 3}, command: func() []string {
		return append(command(), "-copies", "3")
	}}
}

// A lanczosCase is a bar of Figure 4 of paper 002: 3,500 iterations, with a checkpoint every 500,
// pings, and failures in the middle between two checkpoints.
type lanczosCase struct {
	name  string
	bar   string // label of its bar
	args  []string
	kills []int // iterations at which ranks are killed
}

var (
	withCheckpoints = []string{"-checkpoint", "500"}
	withPings       = []string{"-checkpoint", "500", "-detector", "ping", "-period", "100ms"}
	lanczosCases    = []lanczosCase{
		{"without health check and checkpoints", "neither", []string{"-checkpoint", "0"}, nil},
		{"with checkpoints", "check-\npoints", withCheckpoints, nil},
		{"with both", "both", withPings, nil},
		{"1 failure", "1\nfailure", withPings, []int{750}},
		{"2 failures", "2\nfailures", withPings, []int{750, 1750}},
		{"3 failures", "3\nfailures", withPings, []int{750, 1750, 2750}},
		{"3 at once", "3 at\nonce", withPings, []int{750, 750, 750}},
	}
)

// lanczosRows are the rows that need no MPI.
func lanczosRows(p *programs) []row {
	ranks := &lanczosJob{name: "8 + 4 goroutine ranks", figure: "figure4", victims: []int{1, 3, 5}, command: func() []string {
		return []string{p.build("examples/lanczos"), "-ranks", "8"}
	}}
	processes := processesOf("mpicxrun", "figure4-processes", func() []string {
		return []string{p.build("mpicx/mpicxrun"), "-n", "8", p.build("examples/lanczos")}
	})
	fresh := processesOf("mpicxrun", "", func() []string {
		return []string{p.build("mpicx/mpicxrun"), "-n", "4", "-respawn", "4", p.build("examples/lanczos")}
	})
	fresh.respawn = true
	return append(append(ranks.rows(), processes.rows()...),
		row{what: "Lanczos, 4 processes of mpicxrun, SIGKILL to the next iteration, with a fresh process", against: "with a spare", measure: func(cfg config) (r result) {
			once := lanczosCase{args: withCheckpoints, kills: []int{750}}
			for range cfg.times(9) {
				r.ours = append(r.ours, fresh.solve(cfg, mediumSheet, once).outage())
				r.theirs = append(r.theirs, processes.solve(cfg, mediumSheet, once).outage())
			}
			return r
		}})
}

// lanczosRows are the rows under mpirun.
func (m *mpi) lanczosRows() []row {
	return processesOf("mpirun", "figure4-mpirun", func() []string {
		return append(m.run[:len(m.run):len(m.run)], "--with-ft", "ulfm", "-n", "8", m.lanczos)
	}).rows()
}

// rows are the bars of Figure 4, and other results of the runs.
func (j *lanczosJob) rows() (all []row) {
	for i, c := range lanczosCases {
		all = append(all, row{what: fmt.Sprintf("Lanczos (paper 002, Figure 4), %s: %s", j.name, c.name), against: lanczosCases[0].name, measure: func(cfg config) result {
			cases := j.measure(cfg)
			cfg.figures.addBar(j, c.bar, cases[i])
			return result{totals(cases[i]), totals(cases[0]), "the fastest: " + fastest(cases[i]).String()}
		}})
	}
	return append(all,
		row{what: "Lanczos, " + j.name + ": held up in Save", against: "the whole run", reach: 0.001, measure: func(cfg config) (r result) {
			for range cfg.times(5) {
				run := j.solve(cfg, largeSheet, lanczosCases[1])
				r.ours, r.theirs = append(r.ours, run.Seconds.Checkpointing*1e9), append(r.theirs, run.total()*1e9)
			}
			return r
		}},
		row{what: "Lanczos, " + j.name + ": death to the next iteration", against: "to the error, and reading back", reach: 2, measure: func(cfg config) (r result) {
			for range cfg.times(5) {
				run := j.solve(cfg, largeSheet, lanczosCases[3])
				r.ours = append(r.ours, run.outage())
				r.theirs = append(r.theirs, run.outage()-run.Seconds.Rebuilding*1e9)
			}
			return r
		}})
}

// Sizes of sheets. If other programs use the machine, they disturb short runs less.
const (
	mediumSheet = "100x100"
	largeSheet  = "300x300"
)

// measure returns the runs of all cases, which are made in turn.
func (j *lanczosJob) measure(cfg config) [][]*lanczosRun {
	if j.cases == nil {
		j.cases = make([][]*lanczosRun, len(lanczosCases))
		for range cfg.times(12) {
			for i, c := range lanczosCases {
				j.cases[i] = append(j.cases[i], j.solve(cfg, mediumSheet, c))
			}
		}
	}
	return j.cases
}

func fastest(runs []*lanczosRun) *lanczosRun {
	return slices.MinFunc(runs, func(r, o *lanczosRun) int { return cmp.Compare(r.total(), o.total()) })
}

func totals(runs []*lanczosRun) (s samples) {
	for _, r := range runs {
		s = append(s, r.total()*1e9)
	}
	return s
}

// solve makes a run, and checks its eigenvalues against those of an undisturbed run.
func (j *lanczosJob) solve(cfg config, size string, c lanczosCase) *lanczosRun {
	if cfg.quick {
		size = "20x20"
	}
	args := append(append(j.command(), j.rescues(), "-size", size, "-iterations", "3500", "-json"), c.args...)
	for i, at := range c.kills {
		args = append(args, "-kill", fmt.Sprintf("%d@%d", j.victims[i], at))
	}
	r := j.start(args)
	if len(r.Replaced) != len(c.kills) {
		panic(fmt.Sprintf("%v: ranks %v were replaced, expected %d", args, r.Replaced, len(c.kills)))
	}
	if j.undisturbed == nil {
		j.undisturbed = make(map[string][]float64)
	}
	want := j.undisturbed[size]
	if want == nil {
		want = j.start(append(j.command(), "-size", size, j.rescues(), "-iterations", "3500", "-json")).Eigenvalues
		j.undisturbed[size] = want
	}
	for i, e := range want {
		if math.Abs(e-r.Eigenvalues[i]) > 1e-10 {
			panic(fmt.Sprintf("%v: eigenvalues %v, expected %v", args, r.Eigenvalues, want))
		}
	}
	return r
}

func (j *lanczosJob) rescues() string {
	if j.respawn {
		return "-respawn"
	}
	return "-spares=4"
}

func (j *lanczosJob) start(command []string) *lanczosRun {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var says strings.Builder
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		panic(fmt.Sprintf("%v: %v\n%s", command, err, says.String()))
	}
	r := new(lanczosRun)
	must(json.Unmarshal(out, r))
	return r
}

// programs are built once, with -tags ulfm, in a temporary directory.
type programs struct{ folder string }

func (p *programs) build(path string) string {
	if p.folder == "" {
		var err error
		p.folder, err = os.MkdirTemp("", "bench")
		must(err)
	}
	name := filepath.Join(p.folder, filepath.Base(path))
	if _, err := os.Stat(name); err != nil {
		root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/mpicx/go-mpicx").Output()
		must(err)
		build := exec.Command("go", "build", "-tags", "ulfm", "-o", name, ".")
		build.Dir = filepath.Join(strings.TrimSpace(string(root)), path) // of this module or the root
		out, err := build.CombinedOutput()
		if err != nil {
			panic(fmt.Sprintf("go build %s: %v\n%s", path, err, out))
		}
	}
	return name
}

func (p *programs) remove() { _ = os.RemoveAll(p.folder) }
