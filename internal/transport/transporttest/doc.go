// Package transporttest is the conformance suite of package transport: programs that run on all
// ranks and check what every transport must do. A test is named after what the layers above rely
// on.
//
// It must never know how ranks run. Its programs are written as for MPI: a rank uses nothing but
// its own communicator, and there may be any number of ranks.
package transporttest
