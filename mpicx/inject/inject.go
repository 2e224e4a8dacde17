package inject

import (
	"runtime"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Die ends the calling rank as if its process had been killed. It never returns. With -tags ulfm
// its peers learn of the death, and nothing else is sent from the rank any more. The black
// channel does not see processes die: with it all other ranks get a [mpicx.CommCorruptedError]
// that says so.
//
// Where ranks are goroutines, the calling goroutine ends by [runtime.Goexit]. Other goroutines
// of the rank continue to run, and can reach no other rank. Under mpirun and mpicxrun the
// process gets a SIGKILL: it runs no deferred function and flushes nothing. (Open MPI's mpirun
// lets the other processes live if it was started with --with-ft ulfm, and ends them otherwise.)
func Die(comm *mpicx.Comm) {
	if hook.Of(comm).Mortal() {
		hook.Of(comm).Die()
	} else {
		hook.Of(comm).Abort(hook.ErrUnseen)
	}
	runtime.Goexit()
}
