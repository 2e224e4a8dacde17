//go:build race

package ledger

// raced says that the race detector slows everything down. Machines have no
// concurrency for it to look at.
const raced = true
