package main

import (
	"context"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// heartbeatRows are for an mpirun that spans hosts.
func (m *mpi) heartbeatRows() []row {
	return []row{{what: "between hosts: Allreduce of a double, 4 processes, with heartbeats", against: "without", reach: 1.01, measure: m.heartbeats}}
}

// heartbeats takes the medians of jobs with the usual detector and with one that sleeps, in turn.
func (m *mpi) heartbeats(c config) (r result) {
	for range c.times(15) {
		r.ours = append(r.ours, m.job(4, m.ulfm, "allreduce")[0].median())
		r.theirs = append(r.theirs, m.job(4, m.ulfm, "allreduce", "8", "asleep")[0].median())
	}
	return r
}

// jobAllreduce prints means of samples that are longer than a period of the detector.
func jobAllreduce(ctx context.Context, world *mpicx.Comm) {
	in, out := []float64{float64(world.Rank())}, []float64{0}
	run := func(times int) {
		for range times {
			mpicx.Allreduce(world, in, out, mpicx.Sum).MustWait(ctx)
		}
	}
	run(100)
	start := time.Now()
	run(100)
	times := []int{1 + 100*int(500*time.Millisecond/time.Since(start))}
	mpicx.Bcast(world, times, 0).MustWait(ctx)
	sampled(world, 3, times[0], func() { run(times[0]) })
}

// detectorOf is the detector of a job, according to its arguments: with the default period, with
// hardly any heartbeats, or with pings, frequent or not. The timeouts are long, because no rank may be declared dead
// on a machine with few cores.
func detectorOf(args []string) mpicx.Detector {
	if len(args) > 2 {
		switch args[2] {
		case "asleep":
			return mpicx.Ring{Timeout: 24 * time.Hour}
		case "rare pings":
			return mpicx.Ping{Period: 100 * time.Millisecond, Timeout: time.Minute}
		case "pings":
			return mpicx.Ping{Period: pings.Period, Timeout: time.Minute}
		}
	}
	return mpicx.Ring{Period: 5 * time.Second / 12, Timeout: time.Minute}
}
