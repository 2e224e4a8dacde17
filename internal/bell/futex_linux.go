package bell

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// Rings says whether a ring wakes a sleeper at once.
const Rings = true

const (
	futexWait = 0
	futexWake = 1
	// futexWaitv waits for several words. Linux has it from 5.16 on.
	futexWaitv = 449
	mostWords  = 128
	size32     = 2 // the words have 32 bits
	monotonic  = 1 // the clock of the time limit
)

// waiter is struct futex_waitv.
type waiter struct {
	value       uint64
	word        uint64
	flags, zero uint32
}

// sleep sleeps while all words have their values, until they are woken, for at most this time.
func (b *Bell) sleep(most time.Duration) {
	if n := min(len(b.also), mostWords-1); n > 0 {
		all := make([]waiter, n+1)
		all[0] = waiter{armed, uint64(uintptr(unsafe.Pointer(b.word))), size32, 0}
		for i, word := range b.also[:n] {
			all[i+1] = waiter{uint64(b.was[i]), uint64(uintptr(unsafe.Pointer(word))), size32, 0}
		}
		var now syscall.Timespec
		_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&now)), 0)
		end := now.Nano() + most.Nanoseconds()
		until := struct{ seconds, nanoseconds int64 }{end / 1e9, end % 1e9} // 64 bits on each system
		_, _, err := syscall.Syscall6(futexWaitv, uintptr(unsafe.Pointer(&all[0])), uintptr(n+1), 0, uintptr(unsafe.Pointer(&until)), monotonic, 0)
		runtime.KeepAlive(all)
		switch err {
		case 0, syscall.EAGAIN, syscall.EINTR, syscall.ETIMEDOUT:
			return
		} // ENOSYS, or EPERM in a container
	}
	limit := syscall.NsecToTimespec(most.Nanoseconds())
	_, _, _ = syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(b.word)), futexWait, armed, uintptr(unsafe.Pointer(&limit)), 0, 0)
}

// wake wakes the process that sleeps at the word. The call does not wait, so Go's scheduler is not
// told of it.
func wake(word *uint32) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}
