//go:build mpi && cgo && !native

package mpi

import (
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// Without -tags native MPI's revoke and agree are not used.

// NewLibrary returns nil: there is no library.
func NewLibrary() transport.Library { return nil }

// isNative says whether news comes from MPI that wakes nobody: revokes.
const isNative = false

func (*shim) Pressing() bool { return false }

func startNative() error { return nil }

func pollNative(*node.Sink) bool { return false }

func requestsNative() int { return 0 }
