//go:build mpi && cgo && !linux

package mpi

// #include <sched.h>
import "C"

// yield gives the core to other processes.
func yield() { C.sched_yield() }
