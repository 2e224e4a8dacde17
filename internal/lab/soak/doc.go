// Command soak runs the error backends and the ledgers of all ranks, unchanged, through random
// schedules in virtual time. A schedule has families of communicators, some of which overlap. It
// draws which ranks compute, wait, raise, revoke, agree, shrink, leave and die, and when, and how
// long each message and each news of a death takes. At the end of each schedule soak checks that
// the survivors got what the design rules promise. One seed is one schedule, exactly repeatable: a
// failure prints the command that replays it.
//
//	go -C internal/lab run ./soak -schedules 100000      # seeds 1 to 100000
//	go -C internal/lab run ./soak -for 2h                # new seeds
//	go -C internal/lab run ./soak -seed 123 -trace       # one of them, and what happens in it
//
// It must never know the internals of the state machines, use the real clock in a schedule, or let
// the order of a map decide anything.
package main
