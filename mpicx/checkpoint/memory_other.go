//go:build !linux

package checkpoint

// expect does nothing here: see memory_linux.go.
func expect(b []byte) []byte { return b }
