//go:build race

package buildtags

// Race says that the race detector is on. It slows code down some twelve times, so
// tests enumerate and sample less.
const Race = true
