// Command draw draws what an example prints with -json, into a PNG file:
//
//	go run ./examples/krylov -compare -json | go -C internal/lab run ./draw "$PWD/residual.png"
//	go run ./examples/lanczos -json -history 100 | go -C internal/lab run ./draw "$PWD/eigenvalues.png"
//
// It is a program of its own, so that the examples need no module that draws. It must know of them no
// more than the names in their documents.
package main
