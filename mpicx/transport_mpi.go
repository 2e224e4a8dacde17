//go:build mpi

package mpicx

import (
	"context"

	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/transport"
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

// library returns the MPI library's revoke and agreements, with -tags native, for the world of all
// processes of an MPI job without spares. It returns nil for any other communicator.
func library(c *comm) transport.Library {
	if c.parent != nil || c.lineage.pool != nil || c.t.Features().Name != Transport || c.size != launcher.Processes() {
		return nil
	}
	return mpi.NewLibrary()
}
