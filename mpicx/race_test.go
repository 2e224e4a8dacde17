//go:build race

package mpicx_test

// raced says that the race detector slows everything down.
const raced = true
