//go:build mpi && !cgo

package mpi

// Without cgo there is no MPI. Cgo is off without a C compiler (apt-get install gcc), when
// building for another system, and with CGO_ENABLED=0.
var _ = tags_mpi_needs_cgo__install_a_C_compiler_and_set_CGO_ENABLED_1
