//go:build mpi

package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/transport/mpi"
	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// Transport is the transport that the build tags chose.
const Transport = "mpi"

// launched is how many processes mpirun, or another launcher of MPI jobs, has started; 0 if
// none has: then this one has goroutine ranks, as without -tags mpi.
func launched() int { return launcher.Processes() }

// startLaunched takes part in the job of mpirun.
func startLaunched(ctx context.Context, o node.Options) (*node.Job, error) {
	return mpi.Start(ctx, o)
}

func refuseToBeAlone(*options) error { return nil }

// canBeginAgain says whether a job can begin after one that has ended: where the program has
// begun MPI.
func canBeginAgain() bool { return mpi.Alive() }
