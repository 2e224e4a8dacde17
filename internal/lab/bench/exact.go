package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/exact"
)

func exactRows(p *programs) []row {
	return []row{
		{what: "exact Dot of 10^7", against: "a loop", reach: 3, measure: exactDot},
		{what: "Allreduce of one exact Sum, 4 processes", against: "of one float64", reach: 1.5, measure: p.exactAllreduce},
	}
}

func exactDot(c config) result {
	x, y := make([]float64, 1e7), make([]float64, 1e7)
	for i := range x {
		x[i], y[i] = rand.NormFloat64(), rand.NormFloat64()
	}
	var sum float64
	timed := func(dot func(x, y []float64) float64) func() time.Duration {
		return func() time.Duration {
			start := time.Now()
			sum += dot(x, y)
			return time.Since(start)
		}
	}
	s := inTurn(c.times(51), timed(exact.Dot), timed(loopDot), timed(loopDot4))
	return result{s[0], s[1], fmt.Sprintf("the loop reads %.1f GB/s; with four sums it takes %s", 16*float64(len(x))/s[1].median(), s[2])}
}

func loopDot(x, y []float64) (sum float64) {
	y = y[:len(x)]
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// loopDot4 does not wait for each addition, as the inner products of package krylov.
func loopDot4(x, y []float64) float64 {
	var s0, s1, s2, s3 float64
	for len(x) >= 4 && len(y) >= 4 {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	return s0 + s1 + s2 + s3
}

func (p *programs) exactAllreduce(c config) (r result) {
	job, err := exec.Command(p.build("mpicx/mpicxrun"), "-n", "4", p.build("internal/lab/bench"), "exact", fmt.Sprint(c.times(201))).Output()
	must(err)
	for in := bytes.NewReader(job); ; {
		var ours, theirs float64
		if _, err := fmt.Fscan(in, &ours, &theirs); errors.Is(err, io.EOF) {
			return r
		}
		r.ours, r.theirs = append(r.ours, ours), append(r.theirs, theirs)
	}
}

// jobExact prints times of both reductions.
func jobExact(ctx context.Context, world *mpicx.Comm, samples int) {
	sums, x, sum := make([]exact.Sum, 1), []float64{1}, make([]float64, 1)
	sums[0].Add(1)
	const times = 100
	timed := func(do func()) func() time.Duration {
		return func() time.Duration {
			world.Barrier().MustWait(ctx)
			start := time.Now()
			for range times {
				do()
			}
			return time.Since(start) / times
		}
	}
	total := make([]exact.Sum, 1)
	taken := inTurn(samples, timed(func() { exact.Allreduce(world, sums, total).MustWait(ctx) }), timed(func() { mpicx.Allreduce(world, x, sum, mpicx.Sum).MustWait(ctx) }))
	if world.Rank() == 0 {
		for i, ours := range taken[0] {
			fmt.Fprintln(out, ours, taken[1][i])
		}
	}
}
