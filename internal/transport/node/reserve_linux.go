package node

import (
	"os"
	"syscall"
)

// reserve gives a file this size, and reserves memory for it.
func reserve(f *os.File, size int) error {
	return os.NewSyscallError("fallocate", syscall.Fallocate(int(f.Fd()), 0, 0, int64(size)))
}
