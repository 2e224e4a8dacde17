package main

import "slices"

// A program is what every rank runs: a tree of steps, some of which only some ranks
// take. Communicators are variables, known inside the step that makes them.
type program struct {
	ranks   int
	backend string
	net     uint64 // seed of the delays of the error channel's messages; 0: none
	returns bool   // SetErrhandler(ErrorsReturn)
	plan    string // of deaths, in the language of internal/fault
	body    []*step
}

// world is the variable of the first communicator. Others have the number of the step
// that makes them.
const world = 0

// A kind says what a step is.
type kind uint8

const (
	doOp     kind = iota // an operation of all ranks of a communicator
	doRaise              // an error of some ranks
	doLeave              // some ranks leave by a panic, Goexit, or the death of their process
	doExpire             // some ranks wait, with a deadline, for what never comes
	doCheck              // ranks whose context has ended return its error
	doErr                // some ranks ask Err
	doWork               // some ranks compute for long, unless their context ends
	doScope              // Try, TryAll or Guard around a body
	doDerive             // a communicator for a body
	doRepair             // a body that deaths may end, Agree, Shrink, and a body for those who live
	doRevoke             // some ranks revoke
	doClose              // the end of a communicator, before that of its block
	doPair               // a message between two ranks
)

// A step of a program. Which fields count depends on its kind.
type step struct {
	id    int // no two of a program have the same
	kind  kind
	comm  int // a variable: of the operation, the raise, the scope; the parent of a doDerive
	ranks uint64
	delay []int // microseconds that each rank computes before
	how   int   // one of the constants below, by kind
	arg   int

	catch  bool // doScope: errors of the communicator that leave it are dealt with
	absorb bool // doDerive: so are those that make it useless
	close  bool // doDerive
	repeat int  // doScope
	body   []*step
	then   []*step // doRepair: after Shrink
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

// What is still to end when a communicator is closed.
const (
	closeIdle    = iota
	closeRing    // operations that the rank waits for afterwards
	closeBarrier // the same
	closeDup     // the making of a communicator, which it uses afterwards
	closeHelper  // operations that another of its goroutines watches
	closeNever   // a receive that nobody sends to
	closings
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

// has says whether a rank of the world takes the step.
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
		c.delay = slices.Clone(s.delay)
		c.body, c.then = cloneAll(s.body), cloneAll(s.then)
		all = append(all, &c)
	}
	return all
}

// size is how much there is to read in a program.
func (p *program) size() int {
	return p.ranks + sizeOf(p.body) + min(int(p.net), 1) + map[bool]int{true: 1}[p.returns] + len(p.plan)
}

func sizeOf(steps []*step) int {
	n := 0
	for _, s := range steps {
		n += 10 + sizeOf(s.body) + sizeOf(s.then) + max(s.repeat, 1)
		for _, d := range s.delay {
			n += min(d, 1)
		}
		for r := range 64 {
			if s.has(r) {
				n++
			}
		}
		for _, b := range []bool{s.catch, s.absorb, s.close} {
			if b {
				n++
			}
		}
	}
	return n
}
