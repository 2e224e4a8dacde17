package ledger

import (
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Ledger is the state of one rank. Its methods, and those of its Comms, Scopes and
// Votes, need the caller's lock, unless they say otherwise.
type Ledger struct {
	// Face sets Face, Place and Era of a verdict. The caller sets it. It is called under the lock,
	// once for each verdict.
	Face func(*Error)

	// inside is the communicator that a goroutine of the rank waits on; nil: none
	// does. extra counts the other reasons why the rank attends: further goroutines that
	// wait, channels that are watched, and the end of the program.
	inside atomic.Pointer[Comm]
	extra  atomic.Int32

	// owed are the communicators with a round that is noticed and not joined, in the
	// order of the notices; owing is their number, to be read without the lock.
	owing atomic.Int32
	owed  []*Comm

	// holds is the number of TryAlls in which this rank has voted yes and the votes are not
	// counted yet (see Vote). While it is not 0 the rank joins no round, and what it raises
	// waits in held.
	holds int
	held  []*Raised

	world   *Comm
	last    *Error // the latest verdict
	made    int    // number of scopes opened and communicators made
	Quiet   bool   // Events have no observer, so they become no outputs
	dead    bool   // this process has died: it takes no further part
	over    bool   // the program has ended: operations that begin now are late
	ended   bool   // the job is over everywhere: no round is open any more
	leaving bool   // the process may end, when all that it has raised is resolved
	gone    bool   // Leave was pushed

	carried bool     // out[done] is being carried out
	out     []Output // the first done of these are carried out
	done    int
}

// Next returns the next output, or nil. The output is valid until the next call, which says
// that it has been carried out.
func (l *Ledger) Next() *Output {
	if l.carried {
		l.out[l.done] = Output{}
		l.done++
	}
	if l.carried = l.done < len(l.out); l.carried {
		return &l.out[l.done]
	}
	if l.done, l.out = 0, l.out[:0]; cap(l.out) > spareOutputs {
		l.out = nil
	}
	return nil
}

// ToDo returns the outputs that Next will return, for reading only.
func (l *Ledger) ToDo() []Output {
	if l.carried {
		return l.out[l.done+1:]
	}
	return l.out[l.done:]
}

// spareOutputs bounds the memory that a rank keeps for later outputs.
const spareOutputs = 8

// push adds an output, and returns it for the caller to fill. Ranks are many and their stacks
// small, so neither an Output nor an Event (see tell) may be on the stack.
//
//go:noinline
func (l *Ledger) push(a Action, c *Comm) *Output {
	if l.out == nil {
		l.out = make([]Output, 0, 2) // most rounds need no more
	}
	l.out = append(l.out, Output{Action: a, Comm: c})
	return &l.out[len(l.out)-1]
}

// An Action says what the caller does for an Output.
type Action uint8

const (
	// Raise asks to give Raised to Comm's channel, for round Round. If there is a Family, it
	// also asks to join the round, as Join does; otherwise this rank has joined it already.
	Raise Action = iota + 1
	// Join asks to freeze the agreements of Family, whose decisions go into the report, and
	// join round Round of Comm.
	Join
	// Lose asks to tell Comm's channel that this rank needs the dead.
	Lose
	// Complete asks to end the agreements of Family whose decisions are in the verdict of
	// Error, which has some. Then call Settled.
	Complete
	// Advance asks to move each of Family to the epoch after an error of Generation, and to
	// end pending operations with Error. Members that are Frozen begin the epoch with
	// agreements frozen. If such a member is Lost too, its pending agreements may stay pending
	// until it is not frozen any more. Once they use no buffer any more, call Moved.
	Advance
	// Open asks to start listening on the channel of Comm, which is new. If it is Frozen, it
	// begins with agreements frozen.
	Open
	// Interrupt asks to end the context of Scope.
	Interrupt
	// Withdraw asks to say no in Vote.
	Withdraw
	// Wake asks to wake the goroutines that wait for a change of any communicator, to look
	// again.
	Wake
	// Resume asks to call the functions that wait for the corruption of Comm, or for the
	// death of the process.
	Resume
	// Forget says that the program has closed Comm, that no communicator derived from it is in
	// use, and that this rank knows of no error there. Peers may still begin one. It asks to
	// call Forgotten when nothing is pending on Comm, and no peer needs to know what was
	// agreed there.
	Forget
	// Leave says that the process may end: all that it has raised is resolved.
	Leave
	// Tell says that Event happened.
	Tell
)

var actionNames = [...]string{"", "raise", "join", "lose", "complete", "advance", "open", "interrupt", "withdraw", "wake", "resume", "forget", "leave", "tell"}

func (a Action) String() string { return actionNames[a] }

// An Output is an action that the caller carries out.
type Output struct {
	Action     Action
	Comm       *Comm
	Round      uint64
	Raised     *Raised
	Family     []*Comm // Comm and the communicators derived from it
	Frozen     []bool  // for each of Family
	Lost       []bool  // for each of Family, whether the verdict lacks a member; nil: none
	Generation int
	Error      *Error
	Scope      *Scope
	Vote       *Vote
	Event      *Event
}

// A Kind is the kind of an Event.
type Kind uint8

// The kinds of events, in the order of an error's life.
const (
	Signalled Kind = iota + 1 // this rank raised Event.Raised
	Noticed                   // a round is open, as rank By has told this one
	Joined                    // this rank consents to its end
	Resolved                  // it ended with Event.Error, a propagation
	Corrupted                 // it ended with Event.Error, a corruption
	Revoked                   // the communicator is revoked, as rank By has told this one
	Died                      // the process of rank By has died
	Advanced                  // the communicator moves to its next epoch, before the program is told the verdict
)

var kindNames = [...]string{"", "signal", "notice", "join", "resolved", "corrupted", "revoked", "died", "advance"}

func (k Kind) String() string { return kindNames[k] }

// An Event is an entry of the rank's history, for loggers and timelines.
type Event struct {
	Kind    Kind
	Comm    *Comm
	Round   uint64
	By      int
	Corrupt bool
	Raised  *Raised
	Error   *Error
}

//go:noinline
func (l *Ledger) tell(e Event) {
	if l.Quiet {
		return
	}
	told := e // on the heap only if there is an observer
	l.push(Tell, e.Comm).Event = &told
}

// A Raised is an error that this rank raised.
type Raised struct {
	Comm    *Comm
	Cause   error  // the program's
	Data    []byte // what the other ranks get
	Corrupt bool   // the rank unwound
	Leaving bool   // the rank unwound, and its program is about to end
	Verdict *Error // nil: not resolved yet
}

// An Error is a verdict at this rank.
type Error struct {
	Comm    *Comm            // the communicator of the round
	Verdict *errchan.Verdict // nil: the transport has failed
	Own     []*Raised        // the errors in the verdict that this rank raised
	Face    error            // the error that the program gets
	Place   []int            // the path of the Try that it was raised in; nil: in none
	Era     int              // that of the path, or of the latest if it was raised in several; -1: in none

	told bool // it is over or, if it is a corruption, a look has found it
}

// Corrupt says whether the error is a corruption.
func (e *Error) Corrupt() bool { return e.Verdict == nil || e.Verdict.Corrupt }

// A Comm is what this rank knows of errors on one of its communicators.
type Comm struct {
	Owner  any // the caller's
	ledger *Ledger

	// The family. The parent's errors are errors of this communicator too. Siblings are a
	// list, from the parent's child by next.
	parent     *Comm
	child      *Comm
	next, prev *Comm
	alone      [1]*Comm // this communicator: its Family while none is derived from it

	// The fields that each look reads are together: there may be many ranks, so their data
	// are seldom in a cache.

	// needsLook says that a look may find something here or at an ancestor. It is read
	// without the lock.
	needsLook  atomic.Bool
	disturbing bool // looks at communicators derived from it may find something here or above
	open       bool // the round is open; it is as long as raised is not empty
	joined     bool // this rank has consented to the round's end; implies open
	fatal      bool // a notice has said that the round's verdict will be final
	losing     bool // this rank has told the channel that it needs a dead process
	closed     bool // the program has closed it
	forgetting bool // Forget was pushed, and Forgotten has not followed
	forgotten  bool // Forgotten has returned true
	revoked    bool
	unwound    bool     // this rank has corrupted it, which it does at most once
	aware      bool     // so its program knows of the corruption
	revoking   bool     // it is revoked, and pending operations have not ended (F4)
	looked     bool     // ascending is known
	ascending  bool     // ranks ascend
	everywhere bool     // all members have their sides, or get them no matter what their programs do
	moving     int      // number of verdicts that are resolved and whose Advance is not done, or a buffer still in use
	corrupted  *Error   // each look finds it
	previous   *Error   // its last verdict
	untold     []*Error // verdicts that are not over, oldest first
	owners     int      // the running Try calls that own the first of them: see claim
	number     int      // of Ledger.made

	round  uint64    // the number of the open round, or of the next
	raised []*Raised // errors of this rank that are not resolved, oldest first

	// settling is the verdict between Resolved and Settled, nil if it has no agreements. Until
	// Settled, errors that are raised wait in unsubmitted, and the channel's inputs on the next
	// round in later.
	settling    *Error
	unsubmitted []*Raised
	later       []func()

	// frozen counts the open rounds, here and at ancestors, that this rank has joined. While
	// it is not 0, nothing is agreed here (H5).
	frozen     int
	generation int
	epoch      transport.Epoch

	scopes *Scope // the running Try and Guard calls: a list
	told   int    // number of verdicts, here and at ancestors, that are over
	tries  int    // number of outermost Try calls since the last of these
	era    int    // number of errors of ancestors with which Try calls around have ended
	votes  []*Vote

	ranks []int // the members' ranks in the world; nil: the same as here

	failed []int // the dead, in the order in which this rank learned of them
	acked  int   // how many of failed, from the first on, are acknowledged
}
