package peers

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"syscall"
)

// sameUser returns the pid of the process that listened at the other end when this one connected.
// It is 0 if the process is in a PID namespace that this one does not see. It is an error if the
// process does not belong to this user.
func sameUser(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	var refused error
	err = raw.Control(func(fd uintptr) {
		cred, refused = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = cmp.Or(err, os.NewSyscallError("getsockopt SO_PEERCRED", refused)); err != nil {
		return 0, err
	}
	if int(cred.Uid) != os.Geteuid() {
		return 0, fmt.Errorf("it belongs to user %d, expected %d", cred.Uid, os.Geteuid())
	}
	return int(cred.Pid), nil
}
