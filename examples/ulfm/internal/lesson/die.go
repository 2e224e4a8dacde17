package lesson

import (
	"runtime"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Die ends the calling rank as if its process had been killed: it never returns,
// and nothing of what the rank would have sent leaves it any more.
//
// Where ranks are goroutines, the message layer is told that this one is dead,
// which its peers then learn as they would from a failure detector, and the
// goroutine ends. Under mpirun a rank is a process, and this is a real kill: SIGKILL,
// which runs no deferred function and flushes nothing, just as when a node is
// lost. (mpirun has to be told to let the others live: --with-ft ulfm.)
func Die(world *mpicx.Comm) {
	hook.Die(world)
	runtime.Goexit()
}

// A Fault says where a rank of the world dies: in which step of the program, and
// at which of its points.
type Fault struct {
	Rank, Step int
	Point      string
}

// Here is a point where ranks may die: the calling one does, if f says so.
func (f Fault) Here(world *mpicx.Comm, step int, point string) {
	if f == (Fault{world.Rank(), step, point}) {
		Die(world)
	}
}

// Faults are those of one run.
type Faults []Fault

// Here is a point where ranks may die: the calling one does, if a fault says so.
func (fs Faults) Here(world *mpicx.Comm, step int, point string) {
	for _, f := range fs {
		f.Here(world, step, point)
	}
}
