// Package element knows the elements of messages: a slice as bytes, which types mean the same in
// another process, what combines elements in a reduction, and values as encoding/gob encodes them.
//
// It must never know of ranks, communicators and operations, nor how a message moves.
package element
