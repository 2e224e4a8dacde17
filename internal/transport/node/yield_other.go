//go:build !linux

package node

import "time"

// Yield gives the core to other processes. Without cgo the thread sleeps, as shortly as
// it can.
var Yield = func() { time.Sleep(time.Microsecond) }

func yield() { Yield() }
