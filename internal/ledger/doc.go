// Package ledger is what one rank knows of errors on all its communicators: which
// rounds are open, what it has raised, and which verdicts are not over, because a scope
// that they belong to is still running. It decides the rules T, P, C and D of
// docs/rules.md.
//
// A Ledger is a state machine. It has no I/O, goroutines, clocks or contexts, and
// it must never know how errors look to users, how a verdict is reached, or how
// messages travel. The caller feeds it, under one lock for each rank, from any
// goroutine. It carries out the Outputs without that lock, one at a time and in order.
//
//   - From the error channel: [Comm.Noticed], [Comm.Resolved], [Comm.Revoked],
//     [Comm.Died].
//   - From the program: [Comm.Raise], [Comm.Lose], [Ledger.BeginWait] and [Ledger.EndWait]
//     around each Wait, [Comm.Look], [Ledger.Make], [Comm.Close], [Comm.Open], [Scope.Leave]
//     and [Scope.Close] around each Try and Guard, [Comm.Ask] and [Vote.Confirm] at the end
//     of each TryAll, [Ledger.Leave].
//
// # Where the rules are decided
//
//	T1  owner.go:   claim gives an error to the Try calls that it belongs to
//	T2  scope.go:   Leave says what a Try returns, and whether it sends an error first
//	T3  scope.go:   Close ends the error, by owner.go; Over, for goroutines that outlive the scope
//	T4  look.go:    where no Try is running, the look that finds an error ends it
//	T5  scope.go:   Late says whether a Signal comes too late to be sent
//	P1  resolve.go: every verdict is kept until it is over
//	P2  attend.go:  when a rank consents to the end of a round
//	P4  resolve.go: what was pending ends when the family advances
//	P5  raise.go:   an error that is not in a verdict stays raised, for the next round
//	P7  look.go:    an error that a look finds goes before the operation's result
//	P8  scope.go:   which Try and Guard contexts an error ends
//	C1  raise.go:   Raise, by a rank that unwinds; C2, C4: look.go, a corruption is final
//	D1  family.go:  which communicators are derived from another, and move with it
//	D2  attend.go:  a rank joins the rounds of all its communicators
//	H5  attend.go:  a rank that joins a round freezes the agreements of the family
//
// docs/errors.md has the table of states and events.
package ledger
