package machine

import (
	"os"
	"syscall"
)

// reserve makes a file so long, and sees that there is room for that: else who touches its
// memory first would find that there is none.
func reserve(f *os.File, size int) error { return syscall.Fallocate(int(f.Fd()), 0, 0, int64(size)) }
