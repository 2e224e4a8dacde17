package peers

import (
	"net"
	"os"
	"syscall"
)

// sameUser says whether the process at the other end belongs to this user.
func sameUser(c *net.UnixConn) bool {
	cred := credentials(c)
	return cred != nil && int(cred.Uid) == os.Geteuid()
}

// pidOf returns the pid of the process that listened at the other end when this one connected. It is 0 if the
// process is in a PID namespace that this one does not see.
func pidOf(c *net.UnixConn) int {
	if cred := credentials(c); cred != nil {
		return int(cred.Pid)
	}
	return 0
}

// credentials returns nil if c has been closed.
func credentials(c *net.UnixConn) (cred *syscall.Ucred) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err != nil {
			cred = nil
		}
	})
	return cred
}
