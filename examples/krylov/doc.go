// Krylov solves a linear system on several ranks, injects a fault at one of them in mid-iteration,
// tells every rank, recovers, and reports what happened.
//
//	go run ./examples/krylov                  # a rank's residual turns NaN
//	go run ./examples/krylov -compare         # what each recovery costs
//	go run ./examples/krylov -h
//	go run -tags ulfm ./examples/krylov -inject rank=3,iter=40,kind=die -recovery shrink
//	go build -tags mpi ./examples/krylov && mpirun -n 4 ./krylov
//
// The methods are in mpicx/krylov, their parallel vectors and operators in mpicx/distributed. File
// run.go is the program of a rank, over recovery.Run, and recover.go handles errors and lost ranks.
// Package fault injects faults, package detect finds those that raise no error, and package report
// prints the result. For a first program read examples/solve.
//
// It must use only the public interface of mpicx.
package main
