// Two groups of ranks fit a model each. A group whose fit fails continues where it was best, and
// the other group does not notice. With -die a process dies as well.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/optimize"

	"github.com/mpicx/go-mpicx/docs/guide/09-frameworks/fit"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

const rows = 3000

// rates are those of two counters at time t, as a+b·t.
var rates = [2][2]float64{{4, 1}, {6, -5.8}}

// row returns what a counter has counted at one of the times. Any rank can read any row.
func row(counter, i int) (t, count float64) {
	t = (float64(i) + 0.5) / rows
	random := rand.New(rand.NewPCG(uint64(counter), uint64(i)))
	for p := random.ExpFloat64(); p < rates[counter][0]+rates[counter][1]*t; p += random.ExpFloat64() {
		count++
	}
	return t, count
}

func main() {
	die := flag.Bool("die", false, "rank 1 dies in its fourth evaluation (-tags ulfm)")
	flag.Parse()
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		start := fit.Point{X: []float64{5, 0}, F: math.Inf(1)}
		j := &job{world: world, best: [2]fit.Point{start, start}}
		if *die && world.Rank() == 1 {
			j.dies = 4
		}
		return recovery.Run(ctx, world, j.both, recovery.Shrink())
	}, mpicx.WithRanks(6))
	mpicx.Exit(err)
}

// A job is what a rank keeps from one attempt to the next.
type job struct {
	world   *mpicx.Comm
	dies    int // in which evaluation; 0: never
	counter int
	best    [2]fit.Point // of each counter
	log     [2]string
}

// both is an attempt of all ranks: half of them have the one counter, and half the other.
func (j *job) both(ctx context.Context, a *recovery.Attempt) error {
	j.counter = a.Comm.Rank() * 2 / a.Comm.Size()
	if a.Comm.Rank() == 0 {
		fmt.Printf("all: attempt %d on %d ranks\n", a.N, a.Comm.Size())
	}
	group, err := a.Comm.Split(j.counter, 0).Get(ctx)
	if err != nil {
		return err
	}
	if err := recovery.Run(ctx, group, j.one, recovery.Shrink()); err != nil {
		return err
	}
	logs, err := mpicx.GatherValue(a.Comm, j.log, 0).Get(ctx)
	if err == nil && a.Comm.Rank() == 0 {
		fmt.Print(logs[0][0], logs[len(logs)-1][1])
	}
	return err
}

// one is an attempt of a group.
func (j *job) one(ctx context.Context, a *recovery.Attempt) error {
	best := &j.best[j.counter]
	start, err := mpicx.AllreduceValue(a.Comm, *best, fit.Lower).Get(ctx)
	if err != nil {
		return err
	}
	method := &optimize.GradientDescent{}
	if a.N > 0 {
		method.StepSizer = &optimize.ConstantStepSize{Size: 1e-4} // shorter steps
	}
	n, r := a.Comm.Size(), a.Comm.Rank()
	j.printf("counter %d: attempt %d on %d ranks, from %.2f", j.counter, a.N, n, start.X)
	*best, err = fit.Minimize(ctx, a.Comm, j.loss(rows*r/n, rows*(r+1)/n), start, method)
	if err != nil {
		j.printf(": %v\n", err)
		return err
	}
	j.printf(": %.2f\n", best.X)
	return nil
}

// printf adds to the log of the rank's counter.
func (j *job) printf(format string, args ...any) { j.log[j.counter] += fmt.Sprintf(format, args...) }

// loss returns the negative log-likelihood of rows. It has no value where a rate is not positive.
func (j *job) loss(first, last int) fit.Loss {
	evaluations := 0
	return func(_ context.Context, x, grad []float64) (f float64, err error) {
		if evaluations++; evaluations == j.dies {
			inject.Die(j.world)
		}
		for i := first; i < last; i++ {
			t, count := row(j.counter, i)
			rate := x[0] + x[1]*t
			if rate <= 0 {
				return 0, fmt.Errorf("row %d has a rate of %.3g, expected a positive one", i, rate)
			}
			f += rate - count*math.Log(rate)
			grad[0] += 1 - count/rate
			grad[1] += (1 - count/rate) * t
		}
		return f, nil
	}
}
