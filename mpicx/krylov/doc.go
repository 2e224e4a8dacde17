// Package krylov has the Krylov methods CG, GMRES and BiCGStab for vectors that
// may be divided among ranks.
//
// It must never know the ranks: a Space adds up over them, Operators talk to
// them (see package distributed). What fails there is thrown (see future.Thrown), so
// that the methods read as in a textbook; call them inside mpicx's Try, which takes
// thrown errors back.
//
// A program that watches the iterations, to save them, to check them or to show
// them, sets Options.Observe.
package krylov
