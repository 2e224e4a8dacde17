//go:build !linux && !(mpi && cgo)

package mpi

import "runtime"

// yield gives the core to other goroutines: without MPI there is one process.
func yield() { runtime.Gosched() }
