package machine

import (
	"fmt"
	"syscall"
)

// attributes makes a process begin in a group of its own, so that the processes that it starts
// can be ended with it. The process ends with the thread that has started it, and so with its
// parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// refused says which call the system has refused, if it was one for the attributes: the error of a
// start has only its number. Each call is made with an argument that it finds invalid.
func refused(start error) error {
	const none = ^uintptr(0)
	for _, call := range []struct {
		name, aim         string
		number, arg, arg2 uintptr
	}{
		{"setpgid", "a process group of its own", syscall.SYS_SETPGID, 0, none},
		{"prctl", "a process that ends with mpicxrun", syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, none},
	} {
		if _, _, err := syscall.RawSyscall(call.number, call.arg, call.arg2, 0); err != syscall.EINVAL {
			return fmt.Errorf("%s (for %s): %w", call.name, call.aim, err)
		}
	}
	return start
}
