//go:build !linux || !(amd64 || arm64)

package node

// readMemory is not possible on this system.
func readMemory(int, []byte, uint64, []byte, uint64) (n int, never bool) { return 0, true }
