package machine

import "syscall"

// attributes has a process begin in a group of its own, so that what it starts can be ended
// with it, and end with its parent, or rather with the thread that has started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
