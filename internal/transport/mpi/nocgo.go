//go:build mpi && !cgo

package mpi

// Without cgo there is no MPI. It is off where there is no C compiler (apt-get install
// gcc), for other systems than this one, and with CGO_ENABLED=0.
var _ = tags_mpi_needs_cgo__install_a_C_compiler_and_set_CGO_ENABLED_1
