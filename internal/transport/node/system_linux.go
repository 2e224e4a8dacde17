package node

import (
	"math"
	"os"
	"sync"
	"syscall"
)

// installed returns the size of this machine's memory and swap space. Go ends a program that
// allocates more.
var installed = sync.OnceValue(func() int {
	var s syscall.Sysinfo_t
	if syscall.Sysinfo(&s) != nil {
		return longestMessage
	}
	//nolint:unconvert // they are 32 bits long elsewhere
	return int(min((uint64(s.Totalram)+uint64(s.Totalswap))*uint64(s.Unit), math.MaxInt))
})

// reserve gives a file this size, and reserves memory for it.
func reserve(f *os.File, size int) error {
	return os.NewSyscallError("fallocate", syscall.Fallocate(int(f.Fd()), 0, 0, int64(size)))
}

// yield gives the core to other processes. It is called often if there are more processes than
// cores. A raw system call, which the Go scheduler is not told of, takes a third of the time.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
