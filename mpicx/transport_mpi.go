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
func startLaunched(ctx context.Context, mortal bool) (*node.Job, error) {
	return mpi.Start(ctx, mortal)
}

func refuseToBeAlone(*options) error { return nil }

// mayBeginAgain says whether MPI is the program's, which has begun it, and has not ended.
func mayBeginAgain() bool { return mpi.Alive() }
