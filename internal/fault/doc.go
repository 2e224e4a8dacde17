// Package fault kills ranks of a job at moments that a test names: a [Plan] is
// read from a small language, and wraps the transport of each rank. It must never
// know what a program does, how a collective operation goes, nor which backend resolves
// errors: a [transport.Stepper] and a [transport.Listener] say where they are.
//
// # The language
//
// A plan is statements, one for each death, separated by semicolons or newlines;
// words are separated by blanks.
//
//	plan      = [ statement ] { ( ";" | newline ) [ statement ] } .
//	statement = [ "must" ] deed .
//	deed      = "kill" victim [ "by" signal ] moment
//	          | "exit" victim "with" "status" number moment
//	          | "stop" victim "for" duration moment .
//	victim    = rank | "any" number .
//	moment    = "at" "operation" number
//	          | "in" collective "step" number [ "call" number ]
//	          | "in" protocol "message" number
//	          | "random" "seed" seed "of" number .
//	protocol  = "revoke" | "resolve" | "agree" | "agreefailed" | "shrink" | "replace" | "dup" | "split" | "splitshared" | "create" | "createintercomm" | "end" .
//
// A rank is its number in the world. Numbers count from 1. A collective is named
// as its function in package mpicx is: Allreduce, BcastValue.
//
//	kill 3 at operation 17          instead of beginning its 17th operation
//	kill 3 in Allreduce step 2      before the first message of the second step
//	kill 3 in Bcast step 1 call 4   the same of its fourth Bcast
//	kill 2 in agree message 1       before the first message that it sends in Agree
//	kill 2 random seed 7 of 500     at one of its first 500 operations
//	kill any 2 random seed 7 of 500 so for two ranks, drawn with the same seed
//
// The moments of any number of ranks are random ones. Where ranks are processes, more can
// be done to them than to kill them (which is by SIGKILL, if nothing is said):
//
//	kill 3 by SIGTERM at operation 17
//	exit 2 with status 3 in Barrier step 2
//	stop 1 for 200ms in Allreduce step 2      it goes on afterwards, and has not died
//
// An operation is a send, a receive or a probe that the rank begins, on any of its
// communicators, those that its collective operations consist of among them. It is
// the first thing that does not happen: what the rank began before has left.
//
// A step is an exchange of the algorithm in which the rank sends or receives. Calls
// are counted by name, over all communicators of the rank, those in which it sends
// or receives nothing left out. Without a call, it is the first that gets there.
//
// Messages of the error channel are no operations. They count by what they are
// for, over the whole run: to tell of an error or a revoke ("revoke"); to agree on
// what an error means ("resolve"); to agree in Agree, AgreeFailed, Shrink, Dup, Split, SplitShared or CreateIntercomm,
// or, for "create", in Create, CartCreate, CartSub or GraphCreate; and
// to tell that programs have ended ("end").
//
// A moment that never comes kills nobody. Some steps never come, because a rank has nothing to do in
// them: an Allreduce of one number has steps 1 and 2 among 4 goroutine ranks, and steps 2 and 3 among
// 4 processes, where step 1 is for numbers of ranks that are no power of two. A statement with "must" has to be
// carried out at all its ranks; [Plan.Missed] returns those that were not, and [Plan.Counts] which
// moments a rank has passed:
//
//	must kill 3 in Allreduce step 2
//
// Where the rank's program is sequential,
// moments are reproducible up to the first error that it meets.
package fault
