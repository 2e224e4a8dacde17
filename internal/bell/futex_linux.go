package bell

import (
	"syscall"
	"time"
	"unsafe"
)

// Rings says whether a ring wakes a sleeper at once.
const Rings = true

const (
	futexWait = 0
	futexWake = 1
)

// sleep sleeps while the word has this value, until wake is called, for at most this time.
func sleep(word *uint32, value uint32, most time.Duration) {
	limit := syscall.NsecToTimespec(most.Nanoseconds())
	_, _, _ = syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value), uintptr(unsafe.Pointer(&limit)), 0, 0)
}

// wake wakes the process that sleeps at the word. The call does not wait, so Go's scheduler is not
// told of it.
func wake(word *uint32) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}
