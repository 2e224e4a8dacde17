//go:build unix && !linux

package peers

import "net"

// sameUser: who else can reach into a directory of this user's alone?
func sameUser(*net.UnixConn) bool { return true }
