// Package errchan is the contract between error backends and package mpicx. A rank raises
// reports and joins rounds; the backend resolves each round into a verdict, which is the
// same at every rank.
//
// It must never know how a verdict is reached, nor what a report says.
package errchan
