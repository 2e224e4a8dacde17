package mpicx

import (
	"cmp"
	"context"
	"errors"
	"sync"
)

// An Instance is this process's part in a job (paper section III-A, Instance). It is for
// programs that cannot pass a function to Run, because their main function is not their own.
// Without a launcher it is a job of one rank.
//
// If the program has initialized MPI itself, MPI stays the program's: the Instance does not
// finalize it and does not change its error handlers. The program finalizes MPI after the
// Instance has ended and the last Run has returned. It has to initialize MPI with
// MPI_THREAD_SERIALIZED at least, or with MPI_THREAD_MULTIPLE if it calls MPI during an
// Instance or a Run.
type Instance struct {
	root  *comm // nil: a fresh process, which has no rank
	world func() (*Comm, error)
	end   func() error

	reporter *reporter
	stops    *stopWatch
}

var instance struct {
	sync.Mutex
	*Instance
}

// Initialize returns the process's Instance, and makes it if there is none (MPI_Init). Ctx bounds
// how long it waits for the other processes. Ctx's deadline, and the signals SIGUSR1 and
// SIGQUIT, have a diagnosis printed, as with [Run]. Use Run if you can: it also tells the peers
// when the function fails or panics.
func Initialize(ctx context.Context, opts ...Option) (*Instance, error) {
	if ctx == nil {
		return nil, mpiErrorf("Initialize", ClassOther, nilContext)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	instance.Lock()
	defer instance.Unlock()
	if instance.Instance != nil {
		return instance.Instance, nil
	}
	o := newOptions(opts)
	o.environment = min(o.environment, 1)
	if o.err != nil {
		return nil, o.err
	}
	stops := o.watchStops()
	defer func() {
		if instance.Instance == nil {
			stops.end()
		}
	}()
	j, err := startJob(ctx, o, 1)
	if err != nil {
		return nil, err
	}
	if j.foreign {
		instance.Instance = &Instance{world: func() (*Comm, error) { return nil, nil }, end: j.end, stops: stops}
		return instance.Instance, nil
	}
	if len(j.sides) != 1 {
		err := mpiErrorf("Initialize", ClassCount, "%d ranks, expected one in each process: goroutine ranks are started by Run", o.chosen)
		return nil, errors.Join(err, j.end())
	}
	root, err := newRoot(j.sides[0], o, j)
	if err != nil {
		return nil, err
	}
	if j.unfit != nil {
		root.refuse(j.unfit)
		root.finish(make(map[string]error))
		return nil, errors.Join(j.unfit, j.end())
	}
	world := sync.OnceValues(func() (*Comm, error) {
		world, err := root.lineage.world()
		return world.handle(), err
	})
	i := &Instance{root, world, j.end, report(ctx, o), stops}
	i.reporter.add(root)
	i.stops.add(root)
	if !root.lineage.isSpare() {
		if _, err := i.world(); err != nil {
			i.reporter.End(nil)
			return nil, err
		}
	}
	instance.Instance = i
	return i, nil
}

// World returns the communicator of all ranks. At a spare (WithSpares) it waits until Replace takes
// the spare, and returns the communicator that Replace has made, or nil if the programs of all
// others have ended. If all others have died instead, Finalize returns an error that says so. World
// returns nil at a process that was started later, if Initialize was called without WithRespawn:
// such a process can be a fresh rank of a Run.
func (i *Instance) World() *Comm {
	world, _ := i.world()
	return world
}

// Finalize ends this process's part in the job (MPI_Finalize). It is collective, as Close is.
// Afterwards Initialize makes another Instance, but in a job of mpirun or mpicxrun only if the
// program has initialized MPI itself. Finalize ends the job; [Comm.Close] ends one communicator.
// As Run does, it reports a wrong call that nobody has waited for.
func (i *Instance) Finalize(ctx context.Context) error {
	if ctx == nil {
		return mpiErrorf("Finalize", ClassOther, nilContext)
	}
	instance.Lock()
	defer instance.Unlock()
	switch {
	case i == nil:
		return mpiErrorf("Finalize", ClassOther, "nil Instance, expected one from Initialize")
	case instance.Instance != i:
		return mpiErrorf("Finalize", ClassOther, "this Instance has been finalized already")
	}
	if i.root == nil {
		instance.Instance = nil
		i.stops.end()
		return i.end()
	}
	world, err := i.world()
	if world != nil {
		world = i.root.lineage.last().handle()
	}
	if world != nil && !world.isClosed() { // by the program
		if err := world.Close(ctx); err != nil {
			return err
		}
	}
	instance.Instance = nil
	wrong := i.root.settle(ctx)
	i.root.proc.ended(err)
	if wrong != nil {
		i.root.unwindAll(newFailure(withoutStack(wrong), 0), wrong)
	}
	// As in Run: peers may still meet an error, and continue without this rank.
	i.root.end(err != nil)
	i.reporter.End(err)
	i.stops.end()
	i.root.finish(make(map[string]error))
	return ofRank(cmp.Or(err, i.end(), i.root.untoldMismatch(), wrong), i.root.rank)
}
