// Package stop has what a request to stop is made of: its encoding, the choice between several
// requests, and the signals that ask for a stop.
//
// It must never know how a request reaches other ranks, nor when they stop.
package stop
