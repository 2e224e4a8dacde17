package inject

import (
	"runtime"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Die ends the calling rank as if its process had been killed. It never returns,
// and nothing that the rank would have sent leaves it any more: no error is told
// to its peers but by a backend that sees processes die. The black channel does
// not: ranks that need this one wait until their contexts end.
//
// Where ranks are goroutines, the transport is told that this one is dead, which
// its peers then learn as they would from a failure detector, and the calling
// goroutine ends by [runtime.Goexit]. Other goroutines of the rank run on, and
// reach nobody. Under mpirun the process gets a SIGKILL: it runs no deferred
// function and flushes nothing. (Open MPI's mpirun lets the others live with
// --with-ft ulfm.)
func Die(comm *mpicx.Comm) {
	hook.Die(comm)
	runtime.Goexit()
}
