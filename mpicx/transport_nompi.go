//go:build !mpi

package mpicx

// Transport is the message layer that the build tags chose.
const Transport = "local"

// startJob starts so many ranks, if nobody says how many.
func startJob(o *options, ranks int) (*job, error) { return goroutines(o, ranks), nil }
