// Package distributed has sparse matrices whose rows are divided among the ranks of
// an mpicx communicator: reading them so that no rank holds the whole, the product
// with its halo, and preconditioners that need no other rank. With its Space the
// methods of package krylov run on the communicator.
//
// It must never know the methods, nor how their faults are found.
package distributed
