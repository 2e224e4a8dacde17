package mpicx

import (
	"cmp"
	"context"
	"errors"
	"sync"
)

// An Instance is this process's part in a job, for programs whose main function
// belongs to somebody else, so that Run can't call theirs (paper section III-A,
// Instance). Where no launcher has started this process, it is a job of one rank.
//
// An Instance ends only what it has begun. A program that begins MPI itself ends it
// itself, after the Instance and the last Run; until then MPI is as the program has it, its
// error handlers included. It begins MPI with MPI_THREAD_SERIALIZED at least, and with
// MPI_THREAD_MULTIPLE if it calls MPI while an Instance or a Run is there.
type Instance struct {
	root  *Comm
	world func() (*Comm, error)
	end   func() error

	reporter *reporter
}

var instance struct {
	sync.Mutex
	*Instance
}

// Initialize returns the process's Instance, and makes it if there is none. Ctx bounds its beginning;
// its deadline, and signals, have what the ranks are in printed, as with Run.
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
	j, err := startJob(ctx, o, 1)
	if err != nil {
		return nil, err
	}
	if len(j.sides) != 1 {
		err := mpiErrorf("Initialize", ClassCount, "%d ranks, expected one in each process: goroutine ranks are started by Run", o.chosen)
		return nil, errors.Join(err, j.end())
	}
	root, err := newRoot(j.sides[0], o, j.workers)
	if err != nil {
		return nil, err
	}
	i := &Instance{root, sync.OnceValues(root.lineage.world), j.end, report(ctx, o)}
	i.reporter.add(root)
	if !root.lineage.isSpare() {
		if _, err := i.world(); err != nil {
			i.reporter.end(nil)
			return nil, err
		}
	}
	instance.Instance = i
	return i, nil
}

// World returns the communicator of all ranks. At a spare (WithSpares) it waits until that is
// needed, and returns the communicator that it is taken into by Replace; or nil if the programs
// of all others have ended.
func (i *Instance) World() *Comm {
	world, _ := i.world()
	return world
}

// Finalize ends the process's part; it is collective, as Close is. After it,
// Initialize makes another Instance, but not in a job of mpirun's or mpicxrun's, which can begin
// once, unless the program has begun it.
func (i *Instance) Finalize(ctx context.Context) error {
	if ctx == nil {
		return mpiErrorf("Finalize", ClassOther, nilContext)
	}
	instance.Lock()
	defer instance.Unlock()
	if instance.Instance != i {
		return mpiErrorf("Finalize", ClassOther, "this Instance has been finalized already")
	}
	world, err := i.world()
	if world != nil {
		world = i.root.lineage.last()
	}
	if world != nil && !world.isClosed() { // by the program
		err = world.Close(ctx)
	}
	if err != nil {
		return err
	}
	instance.Instance = nil
	// As in Run: peers may yet meet an error, and go on without this rank.
	i.root.end(false)
	i.reporter.end(nil)
	i.root.finish()
	err = i.end()
	return cmp.Or(err, i.root.untoldMismatch())
}
