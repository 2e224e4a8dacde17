package peers

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"syscall"
)

// sameUser returns an error if the process at the other end does not belong to this user.
func sameUser(c *net.UnixConn) error {
	cred, err := credentials(c)
	if err == nil && int(cred.Uid) != os.Geteuid() {
		err = fmt.Errorf("it belongs to user %d, expected %d", cred.Uid, os.Geteuid())
	}
	return err
}

// pidOf returns the pid of the process that listened at the other end when this one connected. It
// is 0 if the process is in a PID namespace that this one does not see.
func pidOf(c *net.UnixConn) (int, error) {
	cred, err := credentials(c)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// credentials are those of the process at the other end.
func credentials(c *net.UnixConn) (cred *syscall.Ucred, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		cred, refused = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	return cred, cmp.Or(err, os.NewSyscallError("getsockopt SO_PEERCRED", refused))
}
