package main

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// nodeRows compare mpicxrun with mpirun.
func (m *mpi) nodeRows() (all []row) {
	add := func(reach float64, what, against string, measure func(config) result) {
		all = append(all, row{what: "mpicxrun: " + what, against: against, reach: reach, measure: measure})
	}
	for _, size := range []struct{ name, bytes string }{{"8 bytes", "8"}, {"64 KiB", "65536"}, {"1 MiB", "1048576"}} {
		add(1, "round trip of "+size.name+", 2 processes", "the same under mpirun", m.launchers(2, "pingpong", size.bytes))
	}
	add(0.5, "start to the first barrier, 8 processes", "mpirun, a C program", m.starts)
	return all
}

// launchers takes the medians of jobs of one program, ours under mpicxrun and theirs under mpirun,
// in turn.
func (m *mpi) launchers(n int, args ...string) func(config) result {
	return func(c config) (r result) {
		near := &mpi{run: []string{m.mpicxrun}}
		for range c.times(9) {
			r.ours = append(r.ours, near.job(n, m.ours, args...)[0].median())
			r.theirs = append(r.theirs, m.job(n, m.ours, args...)[0].median())
		}
		return r
	}
}

// starts measures the time from the start of a launcher to the first barrier of its job. Our
// program is without MPI.
func (m *mpi) starts(c config) (r result) {
	self, err := os.Executable()
	must(err)
	took := func(run []string, program string) float64 {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		start := time.Now()
		args := append(run[1:len(run):len(run)], "-n", strconv.Itoa(8), program, "start")
		return printed(exec.CommandContext(ctx, run[0], args...))[0][0] - float64(start.UnixNano())
	}
	for range c.times(21) {
		r.ours = append(r.ours, took([]string{m.mpicxrun}, self))
		r.theirs = append(r.theirs, took(m.run, m.theirs))
	}
	return r
}
