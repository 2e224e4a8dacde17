//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package machine

import "syscall"

// attributes makes a process begin in a group of its own, so that the processes that it starts
// can be ended with it. If its parent ends, the process sees this once it has joined its job.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
