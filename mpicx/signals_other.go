//go:build !unix

package mpicx

import "os"

// diagnosisSignals are the signals that MPICX_DIAGNOSE may name: here only that of Control-C.
var diagnosisSignals = map[string]os.Signal{"SIGINT": os.Interrupt}
