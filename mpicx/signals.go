package mpicx

import (
	"maps"
	"os"
	"slices"
	"strings"
)

// signalOf returns the signal that MPICX_DIAGNOSE names.
func signalOf(name string) (os.Signal, error) {
	if s, ok := diagnosisSignals[name]; ok {
		return s, nil
	}
	return nil, mpiErrorf("Run", ClassOther, "MPICX_DIAGNOSE=%q, expected one of %s", name, strings.Join(slices.Sorted(maps.Keys(diagnosisSignals)), ", "))
}
