// Lanczos finds the lowest eigenvalues of a sheet of graphene on ranks that may be killed at any
// time: the experiment of Shahzad, Kreutzer, Zeiser, Machado, Pieper, Hager, Wellein, "Building a
// fault tolerant application using the GASPI communication layer", 2015.
//
//	go run -tags ulfm ./examples/lanczos -spares 2 -kill 3@1200
//	go build -tags ulfm ./examples/lanczos && go run ./mpicx/mpicxrun -n 6 ./lanczos -spares 2
//
// and, from another terminal, kill -9 one of the processes. Read the files in this order:
//
//	sheet.go        the Hamiltonian, row by row
//	product.go      its product with a vector that ranks share
//	lanczos.go      the algorithm
//	tridiagonal.go  the eigenvalues
//	solve.go        what is saved, and what becomes of an error
//
// It must use only the public interface of mpicx.
package main
