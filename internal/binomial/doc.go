// Package binomial is the binomial tree over n ranks: the shape of the fastest
// broadcast where a rank can send one message at a time. Rank 0 is the root, a
// rank's parent is itself without its lowest bit, so that both the depth and
// the number of children are at most the logarithm of n.
//
// It must never know what is sent along the tree.
package binomial
