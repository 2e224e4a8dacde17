//go:build mpi && ulfm && native

package mpicx

import (
	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/mpi"
)

// library returns the MPI library's revoke and agreements for the world of all processes of an MPI
// job without spares. It returns nil for any other communicator.
func library(c *Comm) transport.Library {
	if c.parent != nil || c.lineage.pool != nil || c.t.Features().Name != Transport || c.size != launcher.Processes() {
		return nil
	}
	return mpi.NewLibrary()
}
