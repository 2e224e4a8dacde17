//go:build !mpi

package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// Transport is the transport that the build tags chose.
const Transport = "local"

func startLaunched(context.Context, node.Options) (*node.Job, error) { return nil, nil }

// refuseToBeAlone refuses goroutine ranks if a launcher of MPI jobs has started several processes,
// because each would run the whole program by itself. It allows them if the environment gives the
// number of ranks of each process.
func refuseToBeAlone(o *options) error {
	if name, n := launcher.Announced(); n > 1 && o.environment == 0 {
		return mpiErrorf("Run", ClassOther, "a launcher has started %d processes (%s), and each would be a job of its own: build with -tags mpi; or, if that is meant, set MPICX_RANKS", n, name)
	}
	return nil
}

// canBeginAgain says whether a job of processes can begin after one that has ended.
func canBeginAgain() bool { return false }

// library returns nil: without MPI the error backend uses its own protocols.
func library(*comm) transport.Library { return nil }
