// Package local is the transport of ranks that are goroutines of one process. A message is
// copied once, from the sender's buffer to the receiver's, by whichever of the two comes
// second. Only short messages that no receive waits for yet are buffered in between.
//
// It must never know more than package transport does. It blocks only on mutexes that are held
// briefly, because testing/synctest has to see which goroutines above it are blocked.
package local
