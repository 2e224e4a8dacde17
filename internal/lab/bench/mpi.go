package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// An mpi describes how to start jobs of an MPI, ours and the same in C: see c/bench.c.
type mpi struct {
	run                []string // mpirun and its flags
	ours, ulfm, theirs string   // programs; ulfm is "" if the MPI has none
	native             string   // a program that uses the library's own revoke and agree
	lanczos            string   // examples/lanczos; "": MPI has no ULFM
	mpich              bool
	mpicxrun           string // the launcher
	python             string // python/bench.py, where there is mpi4py
	hosts              bool   // two processes, each on its own host
}

// rows are those of the MPI table.
func (m *mpi) rows() (all []row) {
	add := func(reach float64, what, against string, measure func(config) result) {
		all = append(all, row{what: what, against: against, reach: reach, measure: measure})
	}
	trips := func(m *mpi, where string, reach ...float64) {
		for i, size := range []struct{ name, bytes string }{{"8 bytes", "8"}, {"64 KiB", "65536"}, {"1 MiB", "1048576"}} {
			add(reach[i], "round trip of "+size.name+", "+where, "MPI_Isend, MPI_Irecv, MPI_Waitany with the error request",
				m.besidePython(m.compare(m.ours, 2, "", "pingpong", size.bytes), "pingpong", size.bytes))
		}
	}
	if m.hosts {
		trips(m, "2 hosts", 1.2, 1.2, 1.2)
		return all
	}
	trips(m, "2 processes", 1.2, 1.05, 1.05)
	add(1.5, "round trip of 8 bytes, 2 processes, blocking", "MPI_Send, MPI_Recv", m.jobs(2, samples.median, []string{m.ours, "pingpong", "8"}, []string{m.theirs, "blocking", "8"}))
	add(2, "stream of 8 bytes, 2 processes", "MPI_Isend, MPI_Irecv, MPI_Waitall", m.besidePython(m.compare(m.ours, 2, "", "stream", "8"), "stream", "8"))
	add(1.5, "stream of 1 KiB, 2 processes", "MPI_Isend, MPI_Irecv, MPI_Waitall", m.besidePython(m.compare(m.ours, 2, "", "stream", "1024"), "stream", "1024"))
	without := *m // without shared memory
	without.run = append([]string{"env", "MPICX_NODE=1"}, m.run...)
	trips(&without, "2 processes, MPICX_NODE=1", 1.5, 1.1, 1.05)
	all = append(all, m.barrierRows()...)
	for _, b := range []struct{ name, program, suffix string }{{"black channel", m.ours, ""}, {"ulfm", m.ulfm, "-ulfm"}} {
		for _, n := range []int{2, 4, 8} {
			reach := 1.0
			if m.mpich && n == 8 {
				reach = 0.1
			}
			if b.program != "" {
				add(reach, fmt.Sprintf("dup + signal + close, %s, %d processes", b.name, n), "the paper's protocol in C", m.compare(b.program, n, b.suffix, "signal"))
			}
		}
	}
	for _, b := range []struct{ name, program string }{{"ulfm", m.ulfm}, {"native", m.native}} {
		if b.program == "" {
			continue
		}
		for _, n := range []int{2, 4, 8} {
			add(1.15, fmt.Sprintf("signal to the last rank told, %s, %d processes", b.name, n), "MPIX_Comm_revoke, agree, shrink, and who failed", m.compare(b.program, n, "-ulfm", "told"))
		}
		for _, n := range []int{2, 4, 8} {
			add(1.15, fmt.Sprintf("Agree, %s, %d processes", b.name, n), "MPIX_Comm_agree", m.compare(b.program, n, "-ulfm", "agree"))
		}
		add(1.1, fmt.Sprintf("SIGKILL to the error at every survivor, %s, 4 processes", b.name), "MPIX_Comm_revoke, agree", m.recovery(b.program, 0))
		add(1.1, fmt.Sprintf("SIGKILL to a shrunk communicator, %s, 4 processes", b.name), "and MPIX_Comm_shrink", m.recovery(b.program, 1))
	}
	if m.ulfm != "" {
		const restore = "Restore of one lost rank from a partner, 64 MiB, ulfm, 2 processes"
		add(1.3, restore, "MPI_Send and MPI_Recv of 64 MiB to new memory", m.restore("transfer-fresh"))
		add(0, restore, "the same to memory in use", m.restore("transfer"))
	}
	if m.mpicxrun != "" {
		all = append(all, m.nodeRows()...)
	}
	if m.lanczos != "" {
		all = append(all, m.lanczosRows()...)
	}
	add(1.01, "fault-free Krylov solve under Try, 2 processes", "the same without", m.krylov)
	return all
}

// job runs a program on n processes and returns what it prints.
func (m *mpi) job(n int, program string, args ...string) []samples {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	flags := m.run[1:]
	if program == m.ulfm || program == m.native || len(args) > 0 && (strings.HasSuffix(args[0], "-ulfm") || args[0] == "recover") {
		flags = append(flags[:len(flags):len(flags)], "--with-ft", "ulfm")
	}
	return printed(exec.CommandContext(ctx, m.run[0], append(append(flags[:len(flags):len(flags)], "-n", strconv.Itoa(n), program), args...)...))
}

// printed runs a command and returns the columns of numbers that it prints.
func printed(c *exec.Cmd) (columns []samples) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, os.Stderr
	must(c.Run())
	for line := range strings.Lines(out.String()) {
		for i, word := range strings.Fields(line) {
			v, err := strconv.ParseFloat(word, 64)
			if err != nil {
				panic(fmt.Sprintf("%v printed %q", c, line))
			}
			if i == len(columns) {
				columns = append(columns, nil)
			}
			columns[i] = append(columns[i], v)
		}
	}
	if columns == nil {
		panic(fmt.Sprintf("%v printed nothing", c))
	}
	return columns
}

// compare takes the medians of jobs, ours and theirs in turn.
func (m *mpi) compare(ours string, n int, suffix string, args ...string) func(config) result {
	theirs := append([]string{m.theirs, args[0] + suffix}, args[1:]...)
	return m.jobs(n, samples.median, append([]string{ours}, args...), theirs)
}

// besidePython notes the time that mpi4py takes for a row.
func (m *mpi) besidePython(measure func(config) result, args ...string) func(config) result {
	return func(c config) result {
		r := measure(c)
		if m.python != "" {
			var took samples
			for range c.times(5) {
				took = append(took, m.job(2, "python3", append([]string{m.python}, args...)...)[0].median())
			}
			r.note = "mpi4py: " + took.String()
		}
		return r
	}
}

// jobs takes one number from the samples of each job, of two commands in turn.
func (m *mpi) jobs(n int, one func(samples) float64, ours, theirs []string) func(config) result {
	return func(c config) (r result) {
		for range c.times(9) {
			r.ours = append(r.ours, one(m.job(n, ours[0], ours[1:]...)[0]))
			r.theirs = append(r.theirs, one(m.job(n, theirs[0], theirs[1:]...)[0]))
		}
		return r
	}
}

// barrierRows are Table I of paper 004: OSU's barrier, with an MPI that can't lose processes and
// with one that can, and with error channels. A sample is a mean. The smallest of each job counts,
// because other programs have disturbed it least.
func (m *mpi) barrierRows() (all []row) {
	for _, n := range []int{2, 4, 8} {
		add := func(what, against string, ours, theirs []string) {
			all = append(all, row{what: fmt.Sprintf("OSU barrier (paper 004, Table I), %s, %d processes", what, n), against: against, measure: m.jobs(n, samples.least, ours, theirs)})
		}
		plain := []string{m.theirs, "barrier"}
		add("without error channel", "MPI_Barrier in C", []string{m.ours, "barrier-bare"}, plain)
		add("error channel on", "MPI_Barrier in C", []string{m.ours, "barrier"}, plain)
		add("error channel on", "without it", []string{m.ours, "barrier"}, []string{m.ours, "barrier-bare"})
		add("error channel in C: MPI_Ibarrier, MPI_Waitany with the error request", "MPI_Barrier in C", []string{m.theirs, "barrier-channel"}, plain)
		if m.ulfm != "" {
			add("ulfm", "MPI_Barrier in C, with ulfm", []string{m.ulfm, "barrier"}, []string{m.theirs, "barrier-ulfm"})
			add("in C, with ulfm", "without", []string{m.theirs, "barrier-ulfm"}, plain)
		}
	}
	return all
}

// recovery takes one of the two times that a job with a killed process prints.
func (m *mpi) recovery(ours string, which int) func(config) result {
	return func(c config) (r result) {
		for range c.times(21) {
			r.ours = append(r.ours, m.job(4, ours, "recover")[0][which])
			r.theirs = append(r.theirs, m.job(4, m.theirs, "recover")[0][which])
		}
		return r
	}
}

// restore compares the restore after a death, of which a job has one, with a message.
func (m *mpi) restore(transfer string) func(config) result {
	return func(c config) (r result) {
		for range c.times(15) {
			r.ours = append(r.ours, m.job(3, m.ulfm, "restore")[0][0])
			r.theirs = append(r.theirs, m.job(2, m.theirs, transfer, strconv.Itoa(checkpointBytes))[0].median())
		}
		return r
	}
}

func (m *mpi) krylov(c config) (r result) {
	for range c.times(5) {
		columns := m.job(2, m.ours, "krylov")
		for i, which := range columns[0] {
			if which == 0 {
				r.ours = append(r.ours, columns[1][i])
			} else {
				r.theirs = append(r.theirs, columns[1][i])
			}
		}
	}
	return r
}
