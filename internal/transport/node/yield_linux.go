package node

import "syscall"

// yield gives the core to other processes. It is done often where there are more of them
// than cores: Go need not hear of it, which takes a third of the time.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
