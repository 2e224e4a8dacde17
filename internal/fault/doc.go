// Package fault kills ranks of a job at moments that a test names. A [Plan] is read from a
// small language, and wraps the transport of each rank. The package must never know what a
// program does, how a collective operation works, or which backend resolves errors: a
// [transport.Stepper] and a [transport.Listener] say where they are.
//
// # The language
//
// A plan consists of statements, one for each death, separated by semicolons or newlines. Words
// are separated by blanks.
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
//	protocol  = "revoke" | "resolve" | "agree" | "agreefailed" | "shrink" | "replace" | "dup" | "split" | "splitshared"
//	          | "create" | "cartcreate" | "cartsub" | "graphcreate" | "createintercomm" | "merge"
//	          | "stop" | "stopping" | "background" | "diagnose" | "end" .
//
// A rank is its number in the world. Other numbers count from 1. A collective has the name of
// its function in package mpicx: Allreduce, BcastValue.
//
// A statement with "any" has random moments. Only ranks that are processes can get another signal
// than SIGKILL, exit, or be stopped. RunFaults and RunProcessFaults of package mpicxtest have
// examples.
//
// An operation is a send, a receive or a probe that the rank begins on any of its
// communicators, including those of its collective operations. The named operation is the first
// thing that does not happen: everything that the rank has sent before has left.
//
// A step is an exchange of the algorithm in which the rank sends or receives; on a board there are
// two, before the rank comes and after (see Meet). Calls are counted
// by name, over all communicators of the rank. Calls in which it neither sends nor receives do
// not count. A statement without a call means the first call that reaches the step.
//
// Messages of the error channel are not operations. They are counted by their purpose, over the
// whole run: notices of an error or a revoke ("revoke"); the agreement on what an error means
// ("resolve"); agreements in Agree, AgreeFailed, Shrink, Replace, Dup, Split, SplitShared or
// CreateIntercomm or, for "create", in Create, CartCreate, CartSub or GraphCreate; requests to stop
// ("stop") and the agreement to do so ("stopping"); agreements of files ("background"); questions
// and their answers ("diagnose"); and messages that programs have ended ("end").
//
// If a moment never comes, the statement does nothing. Some steps never come, because the rank
// has nothing to do in them. A statement with "must" has to be carried out at all its ranks.
// [Plan.Missed] returns the statements that were not, and [Plan.Counts] the moments that a rank
// has passed.
//
// If the rank's program is sequential, moments are reproducible up to the first error that it
// meets.
package fault
