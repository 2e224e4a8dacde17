//go:build mpi && ulfm && native

package mpicx

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/launcher"
)

// The world of all processes uses MPI's revoke and agree. Communicators derived from it do not.
func TestNativeIsUsed(t *testing.T) {
	if launcher.Processes() == 0 {
		t.Skip("mpirun has not started this process")
	}
	require.NoError(t, Run(t.Context(), func(ctx context.Context, world *Comm) error {
		made := world.Dup().MustGet(ctx)
		if library(world.of()) == nil || library(made.of()) != nil {
			return errors.New("MPI is to revoke and agree on the world, and on nothing else")
		}
		return made.Close(ctx)
	}))
}
