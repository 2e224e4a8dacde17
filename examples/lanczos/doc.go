// Lanczos finds the lowest eigenvalues of a sheet of graphene on ranks that may be killed
// meanwhile: the experiment of Shahzad, Kreutzer, Zeiser, Machado, Pieper, Hager, Wellein,
// "Building a fault tolerant application using the GASPI communication layer", 2015.
//
//	go run -tags ulfm ./examples/lanczos -spares 2 -kill 3@1200
//	go build -tags ulfm ./examples/lanczos && go run ./mpicx/mpicxrun -n 6 ./lanczos -spares 2
//
// and, from another terminal, kill -9 of one of the processes. What to read, in this order:
//
//	sheet.go        the Hamiltonian, row by row
//	product.go      its product with a vector that ranks share
//	lanczos.go      the algorithm
//	tridiagonal.go  the eigenvalues
//	solve.go        what is saved, and what becomes of an error
//
// It must never know more of mpicx than its face.
package main
