package inject

import (
	"runtime"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Die ends the calling rank as if its process had been killed. It never returns, and nothing is
// sent from the rank any more. With -tags ulfm its peers learn of the death. The black channel
// does not see it: ranks that need the dead one wait until their contexts end.
//
// Where ranks are goroutines, the calling goroutine ends by runtime.Goexit. Other goroutines of
// the rank continue to run, and can reach no other rank. Under mpirun and mpicxrun the process
// gets a SIGKILL: it runs no deferred function and flushes nothing. (Open MPI's mpirun lets the
// other processes live if it was started with --with-ft ulfm.)
func Die(comm *mpicx.Comm) {
	hook.Die(comm)
	runtime.Goexit()
}
