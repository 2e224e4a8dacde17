// Heat computes how a square plate cools, with its edges kept at 0, on a grid of ranks. It
// continues when a rank fails or its process dies. With -dir, Control-C or SIGTERM
// stops all ranks after the same step, and the same command continues from there.
//
//	go run ./examples/heat
//	go build -tags ulfm ./examples/heat
//	./heat -die
//	go run ./mpicx/mpicxrun -v -n 5 ./heat -fail 0 -pause 5ms
//	go run ./mpicx/mpicxrun -v -n 4 -respawn 9 ./heat -respawn -fail 0 -pause 5ms # or this one
//	kill -9 PID                                                                   # in another terminal: one that -v prints
//	timeout 2 ./heat -dir /tmp/plate -pause 5ms # stops, and
//	./heat -dir /tmp/plate                      # continues
//
// Read four functions: run starts the ranks; attempt, which recovery.Run calls repeatedly, makes a
// grid of the living ranks; restore finds the step to continue from; advance computes and exchanges
// the edges of the blocks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

func main() {
	c := &config{}
	flag.IntVar(&c.cells, "cells", 200, "`cells` of the plate in each direction")
	flag.IntVar(&c.steps, "steps", 1000, "`steps` of time")
	flag.IntVar(&c.ranks, "ranks", 4, "`ranks` to divide the plate among; under mpirun and mpicxrun, its processes but for the spares")
	flag.IntVar(&c.spares, "spares", 1, "`ranks` that wait to take the places of others")
	flag.BoolVar(&c.respawn, "respawn", false, "fresh ranks take the places of others, and none wait; under mpicxrun, with its -respawn")
	flag.StringVar(&c.dir, "dir", "", "`directory` for checkpoints, from which another run continues; default: they are in other ranks' memory only")
	flag.IntVar(&c.every, "checkpoint", 100, "`steps` from one checkpoint to the next")
	flag.IntVar(&c.fail, "fail", 350, "`step` in which the last rank fails, once; 0: it doesn't")
	flag.BoolVar(&c.die, "die", false, "it dies, rather than to return an error (in a build with -tags ulfm)")
	flag.DurationVar(&c.pause, "pause", 0, "`time` to wait in each step, so that there is time to kill a process")
	flag.Parse()

	mpicx.Exit(c.run(context.Background()))
}

// A config contains the flags.
type config struct {
	cells, steps         int
	ranks, spares, every int
	respawn              bool
	dir                  string
	fail                 int
	die                  bool
	pause                time.Duration
	observe              func(comm *mpicx.Comm, step int) error // for tests: called in each step
}

// run computes on all ranks.
func (c *config) run(ctx context.Context) error {
	rescues := mpicx.WithSpares(c.spares)
	if c.respawn {
		rescues = mpicx.WithRespawn()
	}
	kept := []checkpoint.Option{checkpoint.Partner(1)}
	if c.dir != "" {
		kept = append(kept, checkpoint.Dir(c.dir))
	}
	return mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
		p := &plate{config: c}
		// A rescue takes the place of a rank whose process has died; for the rescue, too, this
		// function begins here. When there are no more, the others divide the plate anew.
		return recovery.Run(ctx, world, p.attempt, recovery.Replace(), recovery.ElseShrink(),
			recovery.Checkpoint(kept...))
	}, mpicx.WithRanks(c.ranks), mpicx.WithStop(os.Interrupt, syscall.SIGTERM), rescues)
}

// A plate is one rank's part of the plate.
type plate struct {
	*config
	block       // in this attempt's division of the plate
	saved block // in the store's
	halo  *mpicx.Halo[float64]
	u, v  []float64 // the block with its ghost cells, now and one step later
}

// A block is the rectangle of cells of one rank, at a certain step.
type block struct {
	Ranks      int // number of ranks in this division
	Y, X       int // the first cell
	Rows, Cols int
	Step       int
	Cells      []float64 // row by row; only in the store
}

// attempt computes on the living ranks, from the newest checkpoint. recovery.Run calls it at all of
// them, and again after each error of a rank, which all get, and after each death. A repaired
// communicator is no grid, so each attempt makes its own grid: of other ranks, and perhaps fewer.
func (p *plate) attempt(ctx context.Context, a *recovery.Attempt) error {
	if a.Cause != nil && a.Comm.Rank() == 0 {
		fmt.Printf("attempt %d, after: %v\n", a.N, a.Cause)
	}
	dims, err := mpicx.DimsCreate(a.Comm.Size(), 0, 0)
	if err != nil {
		return err
	}
	grid, err := mpicx.CartCreate(a.Comm, dims, nil).Get(ctx)
	if err != nil {
		return err
	}
	p.block = block{Ranks: grid.Size()}
	p.Y, p.Rows = grid.Block(0, p.cells)
	p.X, p.Cols = grid.Block(1, p.cells)
	if p.cells < dims[0] {
		return a.GiveUp(fmt.Errorf("%d cells in each direction, expected one for each of %d ranks at least", p.cells, dims[0]))
	}
	if p.halo, err = mpicx.NewHalo[float64](grid, []int{p.Rows, p.Cols}, 1, false).Get(ctx); err != nil {
		return err
	}
	p.u, p.v = make([]float64, p.halo.Len()), make([]float64, p.halo.Len()) // 0 beyond the edges of the plate
	if err := p.restore(ctx, a); err != nil {
		return err
	}
	if grid.Rank() == 0 {
		fmt.Printf("%d×%d cells on %d×%d ranks, from step %d\n", p.cells, p.cells, dims[0], dims[1], p.Step)
	}
	if err := p.advance(ctx, a, grid); err != nil {
		return err
	}
	if err := p.report(ctx, grid); err != nil {
		return err
	}
	return grid.Close(ctx)
}

// each calls visit for the cells of the block, with their places in the plate and in u.
func (p *plate) each(visit func(y, x, at int)) {
	for i := range p.Rows {
		for j := range p.Cols {
			visit(p.Y+i, p.X+j, p.halo.Index(i, j))
		}
	}
}

// begin is the initial temperature of a cell.
func (p *plate) begin(y, x int) float64 {
	h := math.Pi / float64(p.cells+1)
	return math.Sin(h*float64(y+1)) * math.Sin(h*float64(x+1))
}

// restore sets the block to its part of the newest checkpoint.
func (p *plate) restore(ctx context.Context, a *recovery.Attempt) error {
	a.Store.Protect("block", &p.saved)
	version, err := a.Store.Restore(ctx)
	lost, isLost := errors.AsType[*checkpoint.LostError](err)
	parts, newHere := errors.AsType[*checkpoint.PartsError](err)
	switch {
	case errors.Is(err, checkpoint.ErrNone), isLost:
		if isLost && a.Comm.Rank() == 0 {
			fmt.Println("from the beginning:", lost)
		}
		p.each(func(y, x, at int) { p.u[at] = p.begin(y, x) })
		return nil
	case newHere: // ranks were lost and not replaced
		p.saved = block{Ranks: parts.Parts}
	case err != nil:
		return err
	}
	p.Step = version
	if p.saved.Ranks == p.Ranks {
		p.take(&p.saved)
		return nil
	}
	for rank := range p.saved.Ranks { // the plate was divided differently: each rank takes its own cells
		old, err := checkpoint.LoadValue[block](ctx, a.Store, "block", rank, version)
		if err != nil {
			return err
		}
		p.take(&old)
	}
	return nil
}

// take copies the cells that another block has in common with this one.
func (p *plate) take(from *block) {
	p.each(func(y, x, at int) {
		if i, j := y-from.Y, x-from.X; i >= 0 && i < from.Rows && j >= 0 && j < from.Cols {
			p.u[at] = from.Cells[i*from.Cols+j]
		}
	})
}

// save saves the block in the store. Saving continues during the next steps.
func (p *plate) save(ctx context.Context, store *checkpoint.Store) {
	cells := p.saved.Cells[:0]
	p.each(func(_, _, at int) { cells = append(cells, p.u[at]) })
	p.saved = p.block
	p.saved.Cells = cells
	store.Save(ctx, p.Step)
}

// alpha is the fraction of the difference to each neighbour that a cell loses in a step: less than
// ¼.
const alpha = 0.2

// advance computes the remaining steps.
func (p *plate) advance(ctx context.Context, a *recovery.Attempt, grid *mpicx.Cart) error {
	for p.Step < p.steps {
		err := a.Stopping(ctx)
		_, stop := errors.AsType[*mpicx.StopError](err) // at all ranks in the same step
		if p.Step > 0 && p.Step%p.every == 0 || stop {
			p.save(ctx, a.Store)
		}
		if err != nil {
			return err
		}
		ghosts := p.halo.Start(p.u)
		p.diffuse(1, p.Rows-1, 1, p.Cols-1) // needs no ghost cells
		if err := ghosts.Wait(ctx); err != nil {
			return err
		}
		for _, row := range []int{0, p.Rows - 1} {
			p.diffuse(row, row+1, 0, p.Cols)
		}
		for _, column := range []int{0, p.Cols - 1} {
			p.diffuse(1, p.Rows-1, column, column+1)
		}
		p.u, p.v = p.v, p.u
		p.Step++

		if p.Step == p.fail && a.N == 0 && grid.Rank() == grid.Size()-1 {
			if p.die {
				inject.Die(a.Comm)
			}
			return fmt.Errorf("injected in step %d", p.Step)
		}
		if p.observe != nil {
			if err := p.observe(a.Comm, p.Step); err != nil {
				return err
			}
		}
		time.Sleep(p.pause)
	}
	return nil
}

// diffuse computes the next step of some rows and columns.
func (p *plate) diffuse(top, bottom, left, right int) {
	stride := p.Cols + 2
	for i := top; i < bottom; i++ {
		for j := left; j < right; j++ {
			at := (i+1)*stride + j + 1
			p.v[at] = p.u[at] + alpha*(p.u[at-stride]+p.u[at+stride]+p.u[at-1]+p.u[at+1]-4*p.u[at])
		}
	}
}

// report prints the deviation of the plate from the exact solution: each step multiplies all
// temperatures by the same number. The checksum of all cells is the same in every run, for every
// division of the plate and after any failures.
func (p *plate) report(ctx context.Context, grid *mpicx.Cart) error {
	half := math.Sin(math.Pi / 2 / float64(p.cells+1))
	decay := math.Pow(1-8*alpha*half*half, float64(p.Step))
	worst, sum := []float64{0}, []uint64{0}
	p.each(func(y, x, at int) {
		worst[0] = max(worst[0], math.Abs(p.u[at]-decay*p.begin(y, x)))
		sum[0] += math.Float64bits(p.u[at]) * uint64(2*(y*p.cells+x)+1)
	})
	if err := mpicx.Allreduce(grid.Comm, worst, worst, mpicx.Max).Wait(ctx); err != nil {
		return err
	}
	if err := mpicx.Allreduce(grid.Comm, sum, sum, mpicx.Sum).Wait(ctx); err != nil {
		return err
	}
	if grid.Rank() == 0 {
		fmt.Printf("%d steps on %d ranks, at most %.1e from the exact solution of %.4f, checksum %016x\n", p.Step, grid.Size(), worst[0], decay, sum[0])
	}
	return nil
}
