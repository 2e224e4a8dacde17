//go:build mpi

package mpicx

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/mpi"
	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// Transport is the transport that the build tags chose.
const Transport = "mpi"

// library is the MPI of this process, which can be started once. Its lock protects its
// fields; Initialize holds the instance's lock before.
var library struct {
	sync.Mutex
	*node.Job
	users int    // Runs and the Instance
	begun uint64 // of them, so far: at all processes in one order
	over  bool
}

func init() {
	hook.Processes = launcher.Processes
	hook.Underway = func() int {
		library.Lock()
		defer library.Unlock()
		if library.Job == nil {
			return 0
		}
		return library.Underway()
	}
	hook.Break = func(err error) { library.Break(err) }
}

// startJob takes part in the job of mpirun. A process that no launcher has started
// has goroutine ranks, as without -tags mpi.
func startJob(o *options, ranks int) (*job, error) {
	if !launcher.Launched() {
		return goroutines(o, ranks), nil
	}
	l := &library
	l.Lock()
	defer l.Unlock()
	if l.over {
		return nil, mpiErrorf("Run", ClassOther, "MPI has been ended in this process, and can't be started again: have an Instance from before the first Run until after the last")
	}
	if l.Job == nil {
		var err error
		if l.Job, err = mpi.Start(o.backend == backendULFM); err != nil {
			return nil, mpiError("Run", err)
		}
	}
	l.users++
	l.begun++
	world := l.World()
	n := cmp.Or(o.chosen, world.Size())
	j := &job{end: leaveLibrary, courtesy: 100 * time.Millisecond}
	var err error
	switch {
	case n > world.Size():
		err = mpiErrorf("Run", ClassCount, "%d ranks, expected %d or fewer: the number of the job's processes", n, world.Size())
	case world.Rank() < n:
		var members []int // all
		if n < world.Size() {
			for r := range n {
				members = append(members, r)
			}
		}
		world.Sub(transport.Name{Seq: l.begun}, members, func(side transport.Comm, e error) {
			j.sides, err = []transport.Comm{side}, mpiError("Run", e)
		})
	}
	if err != nil {
		return nil, errors.Join(err, endLibrary())
	}
	return j, nil
}

// leaveLibrary ends MPI unless it has other users.
func leaveLibrary() error {
	library.Lock()
	defer library.Unlock()
	return endLibrary()
}

func endLibrary() error {
	l := &library
	if l.users--; l.users > 0 {
		return nil
	}
	if err := l.End(); err != nil {
		l.over = true
		return mpiError("Run", err)
	}
	if l.over = !mpi.Alive(); !l.over { // the program has begun it
		l.Job = nil
	}
	return nil
}
