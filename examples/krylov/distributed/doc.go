// Package distributed lets the methods of package solver run on the ranks of an
// mpicx communicator: a Space that reduces over them, an Operator that exchanges
// the halo of a sparse matrix, and preconditioners that need no other rank.
//
// It must never know the methods, nor how their faults are found.
package distributed
