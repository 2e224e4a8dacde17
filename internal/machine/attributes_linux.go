package machine

import "syscall"

// attributes makes a process begin in a group of its own, so that the processes that it starts can
// be ended with it. The process ends with the thread that has started it, and so with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
