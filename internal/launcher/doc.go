// Package launcher finds out whether mpirun, or another launcher of MPI jobs, has started
// this process. It must never need MPI.
package launcher
