// Solve reads a matrix, divides its rows among ranks, and solves a system with it by conjugate
// gradients. It continues when a rank fails or its process dies. With -dir, Control-C or SIGTERM
// stops all ranks after the same iteration, and the same command continues from there.
//
//	go run ./examples/solve
//	go run ./examples/solve -exact -residuals -ranks 3 # the same residuals with another number
//	go build -tags ulfm ./examples/solve
//	go run ./mpicx/mpicxrun -v -n 5 ./solve -spares 1 -pause 100ms
//	go run ./mpicx/mpicxrun -v -n 4 -respawn 9 ./solve -respawn -pause 100ms # or this one
//	kill -9 PID                                                              # in another terminal: one that -v prints
//
// Read four functions: run starts the ranks, recovery.Run calls attempt repeatedly, restore finds
// the iteration to continue from, and iterate solves.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/distributed"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

func main() {
	c := &config{}
	flag.StringVar(&c.matrix, "matrix", "testdata/matrices/poisson2d-128.mtx.gz", "Matrix Market `file`, symmetric and positive definite")
	flag.IntVar(&c.ranks, "ranks", 4, "`ranks` to divide the rows among; under mpirun and mpicxrun, its processes but for the spares")
	flag.IntVar(&c.spares, "spares", 1, "`ranks` that wait to take the places of others")
	flag.BoolVar(&c.respawn, "respawn", false, "fresh ranks take the places of others, and none wait; under mpicxrun, with its -respawn")
	flag.IntVar(&c.every, "checkpoint", 25, "`iterations` from one checkpoint to the next")
	flag.StringVar(&c.dir, "dir", "", "`directory` for checkpoints, from which another run continues; default: they are in other ranks' memory only")
	flag.Float64Var(&c.tol, "tol", 1e-8, "`ratio` of the last residual to the right-hand side")
	flag.BoolVar(&c.exact, "exact", false, "compute the same bits on any number of ranks: slower")
	flag.BoolVar(&c.residuals, "residuals", false, "print the residual of each iteration")
	flag.DurationVar(&c.pause, "pause", 0, "`time` to wait in each iteration, so that there is time to kill a process")
	flag.Parse()

	mpicx.Exit(c.run(context.Background()))
}

// A config contains the flags.
type config struct {
	matrix               string
	ranks, spares, every int
	respawn              bool
	exact, residuals     bool
	dir                  string
	tol                  float64
	pause                time.Duration
	observe              func(comm *mpicx.Comm, iterations int) error // for tests: called in each iteration
}

// run solves the system on all ranks.
func (c *config) run(ctx context.Context) error {
	rescues := mpicx.WithSpares(c.spares)
	if c.respawn {
		rescues = mpicx.WithRespawn()
	}
	return mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
		s := &solver{config: c}
		// A rescue takes the place of a rank whose process has died; for the rescue, too, this
		// function begins here. When there are no more, the others take over the dead rank's
		// rows.
		err := recovery.Run(ctx, world, s.attempt, recovery.Replace(), recovery.ElseShrink())
		if _, stopped := errors.AsType[*mpicx.StopError](err); err == nil || stopped {
			err = errors.Join(err, s.store.Close(ctx)) // ends when all is saved
		}
		return err
	}, mpicx.WithRanks(c.ranks), mpicx.WithStop(os.Interrupt, syscall.SIGTERM), rescues)
}

// A solver is a rank's state, which it keeps from one attempt to the next.
type solver struct {
	*config
	store *checkpoint.Store // keeps states of all ranks, each at two ranks
	state state             // in the store
}

// A state is a rank's part of what the method needs to continue.
type state struct {
	Rank, Ranks int // this part, and the number of parts
	First       int // the row of its first element
	Iterations  int
	Method      krylov.Snapshot
}

// attempt solves the system on the living ranks, from the newest state that they have. recovery.Run
// calls it at all of them, and again after each error of a rank, which all get, and after each
// death. Its decisions depend only on the attempt and the store, so they are the same at all ranks.
func (s *solver) attempt(ctx context.Context, a *recovery.Attempt) error {
	if a.Cause != nil && a.Comm.Rank() == 0 {
		fmt.Printf("attempt %d on %d ranks, after: %v\n", a.N, a.Comm.Size(), a.Cause)
	}
	m, err := distributed.ReadFile(ctx, a.Comm, s.matrix)
	if isFile(err) {
		return a.GiveUp(err) // another attempt would fail again
	} else if err != nil {
		return err
	}
	x, b := make([]float64, m.Rows()), make([]float64, m.Rows())
	for i := range b {
		b[i] = 1
	}
	from, done, err := s.restore(ctx, a, m)
	if err != nil {
		return err
	}
	system := krylov.System{Space: distributed.Space{Comm: a.Comm}, A: m, B: b}
	if s.exact { // the residuals are then as if there had been no deaths
		system.Space, system.A = distributed.ExactSpace{Comm: a.Comm}, m.Ordered()
	}
	return s.iterate(ctx, a, system, x, m, from, done)
}

// isFile reports whether err is this rank's own, about its file.
func isFile(err error) bool {
	_, missing := errors.AsType[*fs.PathError](err)
	_, wrong := errors.AsType[*sparse.FormatError](err)
	return missing || wrong
}

// restore opens the store on the living ranks. It returns the newest state in the store, nil if
// there is none, and that state's number of iterations.
func (s *solver) restore(ctx context.Context, a *recovery.Attempt, m *distributed.Matrix) (*krylov.Snapshot, int, error) {
	store, err := s.open(ctx, a.Comm)
	if err != nil {
		return nil, 0, err
	}
	s.store = store
	version, err := store.Restore(ctx) // sets s.state
	lost, isLost := errors.AsType[*checkpoint.LostError](err)
	parts, newHere := errors.AsType[*checkpoint.PartsError](err)
	switch {
	case errors.Is(err, checkpoint.ErrNone):
		return nil, 0, nil
	case isLost:
		if a.Comm.Rank() == 0 {
			fmt.Printf("from the beginning: %v\n", lost)
		}
		return nil, 0, nil
	case newHere: // ranks were lost and not replaced
		s.state = state{Rank: checkpoint.None, Ranks: parts.Parts}
	case err != nil:
		return nil, 0, err
	}
	return s.gather(ctx, a.Comm, m, version)
}

// open opens the store. Ranks that have it already contribute its contents.
func (s *solver) open(ctx context.Context, comm *mpicx.Comm) (*checkpoint.Store, error) {
	if s.store != nil {
		return s.store.Rejoin(ctx, comm)
	}
	kept := []checkpoint.Option{checkpoint.Partner(1)}
	if s.dir != "" {
		kept = append(kept, checkpoint.Dir(s.dir))
	}
	store, err := checkpoint.Open(ctx, comm, kept...)
	if err == nil {
		store.Protect("state", &s.state)
	}
	return store, err
}

// gather returns the state in the present division of the rows. Other ranks read the parts of ranks
// that are gone, and all parts move to the owners of the rows.
func (s *solver) gather(ctx context.Context, comm *mpicx.Comm, m *distributed.Matrix, version int) (*krylov.Snapshot, int, error) {
	type owner struct {
		Rank    int
		Scalars []float64 // the method's numbers, the same at all ranks
	}
	owners, err := mpicx.AllgatherValue(comm, owner{s.state.Rank, s.state.Method.Scalars}).Get(ctx)
	if err != nil {
		return nil, 0, err
	}
	var orphans []int // parts whose ranks are gone
	for part := range s.state.Ranks {
		if !slices.ContainsFunc(owners, func(o owner) bool { return o.Rank == part }) {
			orphans = append(orphans, part)
		}
	}
	if len(orphans) == 0 && comm.Size() == s.state.Ranks {
		return &s.state.Method, s.state.Iterations, nil
	}

	var mine []state
	if s.state.Rank != checkpoint.None {
		mine = append(mine, s.state)
	}
	for first := 0; first < len(orphans); first += comm.Size() { // each rank takes one
		part := checkpoint.None
		if at := first + comm.Rank(); at < len(orphans) {
			part = orphans[at]
		}
		orphan, err := checkpoint.LoadValue[state](ctx, s.store, "state", part, version)
		if err != nil {
			return nil, 0, err
		}
		if part != checkpoint.None {
			mine = append(mine, orphan)
		}
	}
	known := slices.IndexFunc(owners, func(o owner) bool { return o.Rank != checkpoint.None })
	moved, err := move(ctx, m, mine, owners[known].Scalars)
	return moved, version, err
}

// move returns the state whose parts the ranks have.
func move(ctx context.Context, m *distributed.Matrix, mine []state, scalars []float64) (*krylov.Snapshot, error) {
	moved := &krylov.Snapshot{Vectors: make([][]float64, 2), Scalars: scalars} // CG's vectors are r and p
	for i, v := range []*[]float64{&moved.X, &moved.Vectors[0], &moved.Vectors[1]} {
		var parts []distributed.Part
		for _, p := range mine {
			of := [][]float64{p.Method.X, p.Method.Vectors[0], p.Method.Vectors[1]}[i]
			parts = append(parts, distributed.Part{First: p.First, Values: of})
		}
		var err error
		if *v, _, err = m.Vector(ctx, parts...); err != nil {
			return nil, err
		}
	}
	return moved, nil
}

// iterate solves the system from a state, or from 0.
func (s *solver) iterate(ctx context.Context, a *recovery.Attempt, sys krylov.System, x []float64, m *distributed.Matrix, from *krylov.Snapshot, done int) error {
	began, comm := time.Now(), a.Comm
	if comm.Rank() == 0 {
		fmt.Printf("%d rows on %d ranks, from iteration %d\n", m.Size(), comm.Size(), done)
	}
	res, err := krylov.CG(ctx, sys, x, krylov.Options{Tol: s.tol, MaxIter: 100_000, From: from, Observe: func(ctx context.Context, now *krylov.State) error {
		iterations := done + now.Iter
		if s.residuals && comm.Rank() == 0 {
			fmt.Printf("iteration %d: |r|/|b| = %v\n", iterations, now.Residual)
		}
		err := a.Stopping(ctx)
		_, stop := errors.AsType[*mpicx.StopError](err) // at all ranks in the same iteration
		if iterations%s.every == 0 || stop {
			s.state.Rank, s.state.Ranks, s.state.First, s.state.Iterations = comm.Rank(), comm.Size(), m.First(), iterations
			now.Save(ctx, &s.state.Method)
			s.store.Save(ctx, iterations) // continues during the next iterations; the next Save waits for it
		}
		if err != nil {
			return err
		}
		if s.pause > 0 {
			time.Sleep(s.pause)
		}
		if s.observe != nil {
			return s.observe(comm, iterations)
		}
		return nil
	}})
	if _, ok := errors.AsType[*krylov.BreakdownError](err); ok {
		return a.GiveUp(err)
	}
	if err != nil {
		return err
	}
	residual := sys.TrueResidual(ctx, x)
	if comm.Rank() == 0 {
		fmt.Printf("%d iterations, |b-Ax|/|b| = %.3g, %v since the last attempt began\n", done+res.Iterations, residual, time.Since(began).Round(time.Millisecond))
	}
	return nil
}
