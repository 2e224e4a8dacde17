//go:build !mpi

package mpicx

import "github.com/mpicx/go-mpicx/internal/launcher"

// Transport is the transport that the build tags chose.
const Transport = "local"

// startJob starts goroutine ranks. It refuses to in one of several processes that a
// launcher has started, because each would run the whole program by itself; unless the
// environment says how many ranks each is to have.
func startJob(o *options, ranks int) (*job, error) {
	if name, n := launcher.Announced(); n > 1 && o.environment == 0 {
		return nil, mpiErrorf("Run", ClassOther, "a launcher has started %d processes (%s), and each would be a job of its own: build with -tags mpi; or, if that is meant, set MPICX_RANKS", n, name)
	}
	return goroutines(o, ranks), nil
}
