//go:build unix && !linux

package peers

import "net"

// sameUser returns true: no other user can reach into a directory that only this user may
// enter.
func sameUser(*net.UnixConn) bool { return true }
