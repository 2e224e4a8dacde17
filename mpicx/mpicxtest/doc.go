// Package mpicxtest is for tests of programs that use mpicx. It runs ranks inside a test,
// detects deadlocks at once, and kills ranks by a plan.
//
//   - [Run] has goroutines for ranks, in fake time. It is the fastest, and detects deadlocks.
//   - [RunFaults] is Run with ranks that die at given moments, [EveryDeath] with each rank at each.
//   - [RunProcesses] has a process of this machine for each rank, in real time.
//   - [RunProcessFaults] is RunProcesses with processes that are killed, stopped, or exit.
//
// It must never know how messages or errors travel.
package mpicxtest
