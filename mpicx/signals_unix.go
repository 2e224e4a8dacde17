//go:build unix

package mpicx

import (
	"os"
	"syscall"
)

// diagnosisSignals are the signals that MPICX_DIAGNOSE may name.
var diagnosisSignals = map[string]os.Signal{
	"SIGUSR1": syscall.SIGUSR1, "SIGUSR2": syscall.SIGUSR2, "SIGHUP": syscall.SIGHUP, "SIGQUIT": syscall.SIGQUIT,
}
