// Krylov solves a linear system on several ranks, has something go wrong on one
// of them in mid-iteration, tells every rank, recovers, and says what happened.
//
//	go run ./examples/krylov                  # a rank's residual turns NaN
//	go run ./examples/krylov -compare         # what each recovery costs
//	go run ./examples/krylov -h
//	go run -tags ulfm ./examples/krylov -inject rank=3,iter=40,kind=die -recovery shrink
//	go build -tags mpi ./examples/krylov && mpirun -n 4 ./krylov
//
// The methods are in package solver, their parallel vectors and operators in
// package distributed. How errors cross ranks stands in run.go, what is done
// about them in recover.go, and how ranks do without those whose processes have
// died in shrink.go.
//
// It must never know more of mpicx than its face.
package main
