// Command soak drives the error backends and the ledgers of all ranks, as they are,
// through random schedules in virtual time: whole families of communicators, overlapping
// ones too, and who computes, waits, raises, revokes, agrees, shrinks, leaves and dies, when,
// and how long every message and every news of a death takes. At the end of each
// it checks that the survivors got what the design rules promise. One seed is one
// schedule, exactly repeatable: a failure prints the command that replays it.
//
//	go run ./internal/soak -schedules 100000      # seeds 1 to 100000
//	go run ./internal/soak -for 2h                # seeds nobody has tried
//	go run ./internal/soak -seed 123 -trace       # one of them, and what happens in it
//
// It must never know what is inside the machines, nor use the real clock in a
// schedule or let the order of a map decide anything.
package main
