// Package machine has jobs all of whose processes are on one machine: what starts them and
// waits for them, and the fabric of package node by which each takes part. It must never
// know what the processes do, nor MPI.
//
// A job has a directory, which is gone once all processes have come: a file of memory that
// they share, and the sockets by which they see each other's ends (package peers). The
// launcher is one of those peers: when it ends, whatever ends it, so do the processes.
package machine
