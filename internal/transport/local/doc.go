// Package local is the transport whose ranks are goroutines of one process.
// A message is copied once, from the sender's buffer to the receiver's, by
// whichever of the two comes second; only small messages that nobody waits for
// yet are kept in a buffer in between.
//
// It must never know more than package transport does, nor block on anything but a
// mutex held for a moment: so testing/synctest sees what is blocked above it.
package local
