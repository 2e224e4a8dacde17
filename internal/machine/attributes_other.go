//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package machine

import "syscall"

// attributes has a process begin in a group of its own, so that what it starts can be ended
// with it. If its parent ends, it sees that once it has come to its job.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
