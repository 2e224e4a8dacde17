package main

import (
	"runtime"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
)

// die ends the calling rank as if its process had been killed: it tells nobody,
// and what others wait for from it never comes. Real processes need no help with
// that; a goroutine that just ended would corrupt the communicators that it
// guards, which says more than a dead process can.
func die(comm *mpicx.Comm) {
	hook.Die(comm)
	runtime.Goexit()
}
