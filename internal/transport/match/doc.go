// Package match matches messages with requests, for all transports. A [Matcher] is one rank's side of a
// communicator: which epoch the rank is in, which of its receives and probes match which messages, in
// the order in which they came, by MPI's matching rules (F5), and which of them end with an error, a
// Revoke or a death. It finds them by source and tag, no matter how many there are.
//
// It must never know what a message is or how it moves, how deaths are detected, or how a request is
// completed. It has no lock and calls nothing.
package match
