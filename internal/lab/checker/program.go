package main

import "slices"

// A program is what every rank runs: a tree of steps. Some steps are taken only by some ranks. A rank's
// number is that in the world; the spares that are taken have the numbers after these, in the order in
// which they begin.
// Communicators are variables whose scope is the step that makes them.
type program struct {
	ranks   int
	spares  int
	backend string
	net     uint64 // seed of the delays of the error channel's messages; 0: none
	returns bool   // SetErrhandler(ErrorsReturn)
	several bool   // it has several goroutines at a rank
	plan    string // of deaths, in the language of internal/fault
	body    []*step
}

// world is the variable of the first communicator. Each other variable is the number of the step
// that makes it.
const world = 0

// A kind says what a step is.
type kind uint8

const (
	doOp       kind = iota // an operation of all ranks of a communicator
	doRaise                // an error of some ranks
	doLeave                // some ranks leave by a panic, Goexit, or the death of their process
	doExpire               // some ranks wait, with a deadline, for a message that never comes
	doCheck                // ranks whose context has ended return its error
	doErr                  // some ranks ask Err
	doWork                 // some ranks compute for the time long, unless their context ends
	doScope                // Try, TryAll or Guard around a body
	doDerive               // a communicator for a body
	doRepair               // a body that deaths may end, Agree, Shrink or Replace, and a body for the survivors
	doRevoke               // some ranks revoke
	doClose                // the end of a communicator, before that of its block
	doPair                 // a message between two ranks
	doGroup                // an error group, in a scope
	doListen               // some ranks have a goroutine receive what nobody sends; it may outlive the scope
	doWatch                // some ranks have a goroutine that signals later; it may outlive the scope's function
	doStop                 // some ranks ask for a stop
	doStopping             // all ranks of a communicator ask whether they are to stop
)

// A step of a program. The kind determines which fields it uses.
type step struct {
	id    int // unique in the program
	kind  kind
	comm  int    // a variable: of the operation, the raise, the scope; the parent of a doDerive
	ranks uint64 // which take it; doDerive, doClose: which call Release instead of Close
	delay []int  // ticks for which each rank computes before
	how   int    // one of the constants below, by kind
	arg   int

	crew    []int  // doGroup: its goroutines
	stops   bool   // doGroup: the context of its goroutines ends with the first error
	seed    uint64 // doGroup, doListen, doWatch: of the times at which goroutines begin; 0: at once
	outside bool   // doOp, doGroup, doListen: waits with a context that no scope ends
	defers  int    // doScope: how its function replaces an error of a Wait; 0: not

	catch  bool // doScope: errors of the communicator that leave the scope are handled
	absorb bool // doDerive: errors that corrupt the communicator are handled too
	close  bool // doDerive: the other ranks close the communicator after the body; else they drop it
	// doRepair: spares take the places of the dead, if there are enough
	replace     bool
	repeat      int // doScope
	body        []*step
	afterRepair []*step // doRepair: after Shrink or Replace
}

// How a step raises.
const (
	byReturn = iota
	byThrow
	bySignal
	bySignalError
	raises
)

// How a step leaves.
const (
	byPanic = iota
	byGoexit
	byDeath
)

// What is still pending when a communicator is closed.
const (
	closeIdle    = iota
	closeRing    // operations that the rank waits for afterwards
	closeBarrier // the same
	closeDup     // the making of a communicator, which is used afterwards
	closeHelper  // operations that another of its goroutines watches
	closeNever   // a receive of a message that no rank sends
	closings
)

// The goroutines of a group.
const (
	crewOp    = iota // an operation of all ranks
	crewRing         // the same, of messages with a tag of their own
	crewTry          // the same, in a Try
	crewChild        // the same, in a TryAll on a communicator of its own, in which some ranks may fail
	crewRaise        // an error of some ranks
	// These end when all others have ended.
	crewStop  // returns its context's error
	crewNever // receives what nobody sends
	crewTest  // asks whether it has received that
	crewErr   // asks Err
	crews
)

// How a function defers an error: an error of its own that has come after another.
const (
	deferOwn  = 1 + iota // in its place
	deferWrap            // around it
	deferThrow
	defers
)

// Scopes.
const (
	try = iota
	tryAll
	guard
)

// How a communicator is derived.
const (
	dup   = iota
	split // by world rank modulo arg
)

// repair returns the doRepair of this number.
func (p *program) repair(id int) *step {
	for steps := p.body; ; {
		i := slices.IndexFunc(steps, func(s *step) bool { return s.kind == doRepair })
		if steps[i].id == id {
			return steps[i]
		}
		steps = steps[i].afterRepair
	}
}

// has reports whether a rank takes the step.
func (s *step) has(rank int) bool { return s.ranks>>rank&1 != 0 }

// clone returns a copy that shares nothing.
func (p *program) clone() *program {
	q := *p
	q.body = cloneAll(p.body)
	return &q
}

func cloneAll(steps []*step) []*step {
	var all []*step
	for _, s := range steps {
		c := *s
		c.delay, c.crew = slices.Clone(s.delay), slices.Clone(s.crew)
		c.body, c.afterRepair = cloneAll(s.body), cloneAll(s.afterRepair)
		all = append(all, &c)
	}
	return all
}

// size measures how much a reader of the program has to read.
func (p *program) size() int {
	return p.ranks + p.spares + sizeOf(p.body) + min(int(p.net), 1) + map[bool]int{true: 1}[p.returns] + len(p.plan)
}

func sizeOf(steps []*step) int {
	n := 0
	for _, s := range steps {
		n += 10 + sizeOf(s.body) + sizeOf(s.afterRepair) + max(s.repeat, 1) + 3*len(s.crew) + min(s.defers, 1)
		for _, d := range s.delay {
			n += min(d, 1)
		}
		for r := range 64 {
			if s.has(r) {
				n++
			}
		}
		for _, b := range []bool{s.catch, s.absorb, s.close, s.replace, s.stops, s.outside, s.seed != 0} {
			if b {
				n++
			}
		}
	}
	return n
}
