//go:build mpi && cgo && !linux

package mpi

// #include <sched.h>
import "C"

import "github.com/mpicx/go-mpicx/internal/transport/node"

func init() { node.Yield = func() { C.sched_yield() } }
