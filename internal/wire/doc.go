// Package wire encodes values as bytes for other ranks, and decodes the bytes of other ranks. These
// are untrusted: a [Reader] reports what is wrong with them, never panics, and allocates no more
// than the bytes and the number of ranks justify. It must never know what the values mean.
package wire
