//go:build !unix

package diagnosis

import "os"

// Signals are the signals that MPICX_DIAGNOSE may name: here only that of Control-C.
var Signals = map[string]os.Signal{"SIGINT": os.Interrupt}
