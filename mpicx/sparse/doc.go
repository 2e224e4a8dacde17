// Package sparse has sparse matrices in one process: compressed rows, Matrix Market
// files, an ILU(0) factorization, and the division of rows among ranks.
//
// It must never know of ranks: package distributed does.
package sparse
