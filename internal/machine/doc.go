// Package machine runs jobs on one machine: it starts their processes, waits for them, and
// implements the fabric of package node for them. It must never know what the processes do, nor
// MPI.
//
// A job has a directory, with a file of shared memory and the sockets by which processes see each
// other's ends (package peers). It is removed when all processes have come. The launcher is one of
// the peers: when it ends, for any reason, the processes end too.
package machine
