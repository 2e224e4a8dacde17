//go:build race

package blackchannel_test

// raced says that the race detector slows everything down. Machines have no
// concurrency for it to look at.
const raced = true
