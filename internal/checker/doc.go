// Command checker runs random programs over the public face of package mpicx, with
// ranks as goroutines, and holds what each rank was told against the design rules
// (docs/ARCHITECTURE.md). A program that fails is made as small as it gets and printed
// as Go, with the command that replays it.
//
//	go run ./internal/checker -programs 20000     # seeds 1 to 20000
//	go run ./internal/checker -for 2h             # seeds nobody has tried
//	go run ./internal/checker -seed 123 -trace    # one of them, and what each rank was told
//	go run ./internal/checker -every              # all kinds of failures, each once
//	go run ./internal/checker -parallel           # ranks on all cores
//
// One seed is one program: a tree of steps that every rank runs ([program]), with errors,
// panics, deadlines and deaths at some of them. What happens in it depends on the order
// of events, of which there are many: each run is in a bubble of testing/synctest, where
// ranks compute for different times and messages of the error channel are under way for
// different times, so that a seed repeats mostly, and a hang ends the run at once.
//
// Where to look:
//
//	program.go   what a program is
//	generate.go  which programs there are: legal ones, and what makes one legal
//	exec.go      what a rank does at each step
//	ops.go       operations, and the values that they move
//	scope.go     Try, TryAll, Guard; context.go: when a context ends (P8)
//	derive.go    communicators
//	network.go   delays of the error channel's messages
//	repair.go    deaths: Agree, Shrink, and what those do who live
//	history.go   what is written down of a run, and which errors the face may return
//	model.go     the rules: what must be true of a history, whatever the order of events
//	shrink.go    smaller programs; print.go: programs as text
//
// The model does not predict what ranks are told, since that depends on the order of
// events. It knows what must hold of all that they were told together.
//
// It must never know what is inside mpicx, but for the choice of the backend, the layer
// below (to delay messages) and the end of a rank's process.
package main
