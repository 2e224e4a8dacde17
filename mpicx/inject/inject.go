package inject

import (
	"errors"
	"runtime"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// errUnseen is what the peers of a rank get that has died where nobody sees that.
var errUnseen = errors.New("its process has died; with -tags ulfm the others could go on without it")

// Die ends the calling rank as if its process had been killed. It never returns. With
// -tags ulfm its peers learn of the death, and of nothing else: what the rank would have
// sent does not leave it any more. The black channel sees no process die. There all other
// ranks get a [mpicx.CommCorruptedError] that says so, as they do under mpicxrun.
//
// Where ranks are goroutines, the transport is told that this one is dead, which
// its peers then learn as they would from a failure detector, and the calling
// goroutine ends by [runtime.Goexit]. Other goroutines of the rank run on, and
// reach nobody. Under mpirun the process gets a SIGKILL: it runs no deferred
// function and flushes nothing. (Open MPI's mpirun lets the others live with
// --with-ft ulfm, and ends them without.)
func Die(comm *mpicx.Comm) {
	if hook.Mortal(comm) {
		hook.Die(comm)
	} else {
		hook.Abort(comm, errUnseen)
	}
	runtime.Goexit()
}
