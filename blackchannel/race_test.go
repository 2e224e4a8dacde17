//go:build race

package blackchannel

// Raced says that the race detector slows everything down. Machines have no
// concurrency for it to look at.
const Raced = true
