package machine

import (
	"os"
	"syscall"
)

// reserve gives a file this size, and reserves memory for it. Otherwise the first process that
// touches the memory might find that there is none.
func reserve(f *os.File, size int) error { return syscall.Fallocate(int(f.Fd()), 0, 0, int64(size)) }
