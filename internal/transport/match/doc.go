// Package match has the queues in which messages and receives wait for each other: in
// the order in which they came, as MPI's matching rules want it (design rule F5), and
// found by source and tag however many there are. It must never know what a message
// is, nor how it moves.
package match
