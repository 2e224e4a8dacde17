//go:build !linux

package node

// installed is how much memory there may be on any machine.
var installed = func() int { return min(longestMessage, 1<<40) }
