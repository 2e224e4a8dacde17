// Package transport is the interface of transports, which move point-to-point
// messages with MPI's matching rules, on communicators whose messages can be
// left behind by moving to the next epoch.
//
// It must never know why an epoch ends: errors, backends, collectives and
// futures are above it. What a transport has to do is written down as a program
// in package transporttest, which every transport runs.
package transport
