// Command checker runs random programs over the public interface of package mpicx, with goroutine
// ranks, and checks what each rank was told against the design rules (docs/rules.md). A
// program that fails is shrunk as far as possible and printed as Go, with the command that replays
// it.
//
//	go -C internal/lab run ./checker -programs 20000     # seeds 1 to 20000
//	go -C internal/lab run ./checker -for 2h             # new seeds
//	go -C internal/lab run ./checker -seed 123 -trace    # one of them, and what each rank was told
//	go -C internal/lab run ./checker -every              # all kinds of failures, each once
//	go -C internal/lab run ./checker -again 100          # only failures that come again, for CI
//	go -C internal/lab run ./checker -parallel           # ranks on all cores
//	go -C internal/lab run ./checker -goroutines 0       # one goroutine at each rank (otherwise in half of the programs)
//
// One seed is one program: a tree of steps that every rank runs ([program]). Some steps contain
// errors, panics, deadlines and deaths. A run depends on the order of events, and many orders are
// possible. Each run is in a bubble of testing/synctest, in which ranks compute for different times
// and messages of the error channel take different times. So a seed usually repeats, and a hang
// ends the run at once.
//
// Where to look:
//
//	program.go   what a program is
//	generate.go  which programs there are: legal ones, and what makes one legal
//	exec.go      what a rank does at each step
//	ops.go       operations, and the values that they move
//	scope.go     Try, TryAll, Guard; context.go: when a context ends (P8)
//	derive.go    communicators; close.go: their ends, by Close and Release. In a bubble the runtime
//	             does not free those that are dropped
//	network.go   delays of the error channel's messages
//	goroutines.go, generate_several.go
//	             several goroutines at a rank; model_several.go: what these are told
//	repair.go    deaths: Agree, Shrink, Replace, and what survivors and spares do
//	history.go   the record of a run, and which errors the interface may return
//	model.go     the rules: what must hold for a history, in any order of events
//	shrink.go    smaller programs; print.go: programs as text
//
// The model does not predict what ranks are told, because this depends on the order of events. It
// checks conditions on everything that all ranks together were told.
//
// It must never know the internals of mpicx, except the choice of the backend, the layer below (to
// delay messages) and the end of a rank's process.
package main
