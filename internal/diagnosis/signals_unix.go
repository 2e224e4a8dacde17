//go:build unix

package diagnosis

import (
	"os"
	"syscall"
)

// Signals are the signals that MPICX_DIAGNOSE may name.
var Signals = map[string]os.Signal{
	"SIGUSR1": syscall.SIGUSR1, "SIGUSR2": syscall.SIGUSR2, "SIGHUP": syscall.SIGHUP, "SIGQUIT": syscall.SIGQUIT,
}
