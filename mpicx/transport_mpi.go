//go:build mpi

package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/internal/transport/mpi"
	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// Transport is the transport that the build tags chose.
const Transport = "mpi"

// startLaunched takes part in mpirun's job.
func startLaunched(ctx context.Context, o node.Options) (*node.Job, error) {
	return mpi.Start(ctx, o)
}

func refuseToBeAlone(*options) error { return nil }

// canBeginAgain says whether a job can begin after another has ended: it can if the program itself
// has initialized MPI.
func canBeginAgain() bool { return mpi.Alive() }
