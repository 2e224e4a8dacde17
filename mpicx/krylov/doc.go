// Package krylov has the Krylov methods CG, GMRES and BiCGStab for vectors that
// may be divided among ranks.
//
// It must never know the ranks. A Space adds up over them, and Operators communicate with them (see
// package distributed). Errors there are thrown (see future.Thrown), so the methods read as in a
// textbook. Call them inside mpicx's Try, which returns thrown errors.
//
// A program that saves, checks or shows iterations sets Options.Observe.
package krylov
