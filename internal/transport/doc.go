// Package transport is the interface of transports. A transport moves point-to-point
// messages with MPI's matching rules. Its communicators have epochs: messages of an epoch
// are dropped when a rank moves to the next.
//
// It must never know why an epoch ends: errors, backends, collectives and futures are
// above it. Package transporttest specifies the duties of a transport, as tests that every
// transport runs.
package transport
