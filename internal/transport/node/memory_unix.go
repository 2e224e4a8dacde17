//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package node

import (
	"os"
	"syscall"
)

// mapMemory maps a file into memory, for all that map it.
func mapMemory(file *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}
