// Package binomial has the binomial tree and the binomial graph of n ranks. The tree is the shape
// of the fastest broadcast if a rank can send one message at a time. Rank 0 is the root. A rank's
// parent is the rank without its lowest bit, so the depth and the number of children are at most
// log2 n.
//
// It must never know what is sent along the tree.
package binomial
