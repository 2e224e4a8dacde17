// Package match matches messages with requests, for all transports. A [Matcher] is one rank's side
// of a communicator. It knows the epoch of the rank. It matches receives and probes with messages,
// in the order in which they came, by MPI's matching rules (F5). It decides which of them end
// because of an error, a Revoke or a death. Where many are waiting, it finds them by an index of
// source and tag.
//
// It must never know what a message is or how it moves, how deaths are detected, or how a request
// is completed. It has no lock and calls nothing.
package match
