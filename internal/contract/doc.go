// Package contract holds programs that a user of mpicx could write, and every signature of
// its face. They must go on compiling, and passing, under every combination of build tags
// that needs no MPI: shared/contract/check runs them. It must never know more of this
// module than a user does.
package contract
