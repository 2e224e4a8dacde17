//go:build mpi && ulfm && native

package mpicx

import (
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/mpi"
)

// library returns what MPI has to revoke and to agree by for a communicator, or nil: it is
// for the world of all processes of an MPI job, without spares.
func library(c *Comm) transport.Library {
	if c.parent != nil || c.lineage.pool != nil || c.t.Features().Name != Transport || c.size != launched() {
		return nil
	}
	return mpi.NewLibrary()
}
