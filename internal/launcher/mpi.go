//go:build mpi

package launcher

const withMPI = true
