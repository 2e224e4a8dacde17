//go:build !linux

package node

import (
	"errors"
	"os"
	"time"
)

// installed is how much memory there may be on any machine.
var installed = func() int { return min(longestMessage, 1<<40) }

func reserve(*os.File, int) error { return errors.ErrUnsupported }

// Yield gives the core to other processes. Without cgo the thread sleeps, as shortly as
// it can.
var Yield = func() { time.Sleep(time.Microsecond) }

func yield() { Yield() }
