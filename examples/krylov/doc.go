// Krylov solves a linear system on several ranks, has something go wrong on one
// of them in mid-iteration, tells every rank, recovers, and says what happened.
//
//	go run ./examples/krylov                  # a rank's residual turns NaN
//	go run ./examples/krylov -compare         # what each recovery costs
//	go run ./examples/krylov -h
//	go run -tags ulfm ./examples/krylov -inject rank=3,iter=40,kind=die -recovery shrink
//	go build -tags mpi ./examples/krylov && mpirun -n 4 ./krylov
//
// The methods are in mpicx/krylov, their parallel vectors and operators in
// mpicx/distributed. What a rank does stands in run.go, over recovery.Run, and what is
// done about errors and lost ranks in recover.go. Package fault has what goes wrong,
// package detect finds what nobody tells of, package report tells it all.
// A first program, without all that, is examples/solve.
//
// It must never know more of mpicx than its face.
package main
