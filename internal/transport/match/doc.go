// Package match is where messages meet the requests for them, for all transports. A [Port]
// is one rank's side of it: which epoch the rank is in, which of its receives and probes
// match which messages, in the order in which they came, as MPI's matching rules want it
// (design rule F5), and which end with an error, Revoke or a death. It finds them by source
// and tag however many there are.
//
// It must never know what a message is or how it moves, who has died before it is told, nor
// how a request is completed: it has no lock and calls nobody.
package match
