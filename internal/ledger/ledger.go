package ledger

import (
	"sync/atomic"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A Ledger is the state of one rank. Its methods, and those of its Comms, Scopes and
// Votes, need the caller's lock, unless they say otherwise.
type Ledger struct {
	// Face makes what the program gets of a verdict: the caller's. It is called under
	// the lock, once for each.
	Face func(*Error) error

	// Quiet says that nobody listens to Events: no output is made of them.
	Quiet bool

	// inside is the communicator that a goroutine of the rank waits on; nil: none
	// does. extra counts what else keeps the rank attending: further goroutines that
	// wait, channels that are watched, and that the program has ended.
	inside atomic.Pointer[Comm]
	extra  atomic.Int32

	// owed are the communicators with a round that is noticed and not joined, in the
	// order of the notices; owing is their number, to be read without the lock.
	owed  []*Comm
	owing atomic.Int32

	// holds counts the votes of this rank whose end is near (see Vote): until then it
	// joins no round, and what it raises waits in held.
	holds int
	held  []*Raised

	world    *Comm
	last     *Error // the verdict that came last
	dead     bool   // this process has died: it takes part in nothing
	over     bool   // the program has ended: what it begins now is late
	departed bool   // the process may go
	gone     bool   // and was told to

	out     []Output // the first done of them are
	done    int
	carried bool // the one after these is being carried out
}

// Next returns the next output, nil: there is none. It is valid until Next is called again,
// which says that it is carried out.
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

// spareOutputs bounds the memory that a rank keeps for later ones.
const spareOutputs = 8

// push adds an output, for the caller to say what it is about. Ranks are many, and their
// stacks small: an Output is not to lie on them, nor an Event (see tell).
//
//go:noinline
func (l *Ledger) push(a Action, c *Comm) *Output {
	l.out = append(l.out, Output{Action: a, Comm: c})
	return &l.out[len(l.out)-1]
}

// An Action says what the caller does for an Output.
type Action uint8

const (
	// Raise asks to give Raised to Comm's channel, for round Round, and join it as Join does,
	// if there is a Family: else this rank has joined it.
	Raise Action = iota + 1
	// Join asks to freeze the agreements of Family, whose decisions go into the report, and
	// join round Round of Comm.
	Join
	// Lose asks to tell Comm's channel that this rank needs the dead.
	Lose
	// Complete asks to end the agreements of Family that the verdict of Error has decisions
	// of: no Family, none. Then call Settled.
	Complete
	// Advance asks to move each of Family to the epoch after an error of Generation, ending
	// what is pending with Error; those that Frozen says begin it with agreements
	// frozen. An agreement that is pending in one that is Lost too may stay so until it is
	// no longer frozen. Then call Moved.
	Advance
	// Open asks to have the channel of Comm, which is new, begin to listen; where Frozen says
	// so, with agreements frozen.
	Open
	// Interrupt asks to end the context of Scope.
	Interrupt
	// Withdraw asks to say no in Vote.
	Withdraw
	// Wake asks to have those look again who wait for a change of any communicator.
	Wake
	// Resume asks to call what waits for the corruption of Comm, or for the end of the
	// process.
	Resume
	// Forget says that the program has closed Comm, that nothing derived from it is in use,
	// and that this rank knows of no error there. Peers may still begin one. It asks to call
	// Forgotten when nothing is pending on Comm, and no peer needs to know what was agreed there.
	Forget
	// Leave says that the process may go, and all that it has raised is resolved.
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
	Family     []*Comm // Comm and what is derived from it
	Frozen     []bool  // of each of Family
	Lost       []bool  // the same; nil: none
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
	Noticed                   // a round opened, of which By told
	Joined                    // this rank consents to its end
	Resolved                  // it ended with Event.Error, and the communicator goes on
	Corrupted                 // likewise, and the communicator does not
	Revoked                   // By told of it
	Died                      // the process of rank By
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
	told := e // on the heap only here
	l.push(Tell, e.Comm).Event = &told
}

// A Raised is an error that this rank raised.
type Raised struct {
	Comm    *Comm
	Cause   error  // the program's
	Data    []byte // what the other ranks get
	Corrupt bool   // the rank unwound
	Leaving bool   // and its program is about to end
	Verdict *Error // nil: not resolved yet
}

// An Error is a verdict as this rank has it.
type Error struct {
	Comm    *Comm            // that it is an error of
	Verdict *errchan.Verdict // nil: messages do not move any more
	Own     []*Raised        // those of this rank that the verdict has
	Face    error            // what the program gets

	told  bool // a look has taken it
	known bool // of a corruption: the program knew of it before, because it raised it
}

// Corrupt says whether the error is a corruption.
func (e *Error) Corrupt() bool { return e.Verdict == nil || e.Verdict.Corrupt }

// A Comm is what this rank knows of errors on one of its communicators.
type Comm struct {
	Owner  any // the caller's
	ledger *Ledger

	// The family: parent's errors are this one's, too. Siblings are a list.
	parent     *Comm
	child      *Comm
	next, prev *Comm
	alone      [1]*Comm // itself: its Family, as long as nothing is derived from it

	// What each look reads stands together: there may be many ranks, and what a rank has
	// is seldom in a cache.

	// needsLook says that a look may find something. It is true if something is to be
	// found here or at an ancestor, and is read without the lock.
	needsLook  atomic.Bool
	open       bool // the round is: a rank with something unresolved in raised has an open round
	joined     bool // this rank has consented to its end; never without open
	fatal      bool // its verdict will be final, as this rank was told with a notice
	losing     bool // this rank has told the channel that it needs a dead process
	closed     bool
	forgetting bool // and Forget was asked for
	revoked    bool
	toldSo     bool     // the program was told that it is revoked
	unwound    bool     // this rank has corrupted it, which it does once
	unaware    bool     // and its program was told something else
	moving     int      // verdicts that are resolved and whose Advance is not done
	corrupted  *Error   // each look finds it
	unreported []*Error // that no look has taken, oldest first

	round  uint64    // the one that is open, or will be next
	raised []*Raised // here, and not resolved yet, oldest first

	// settling is the verdict between Resolved and Settled. What is raised meanwhile,
	// and what the channel tells of the next round, waits.
	settling    *Error
	unsubmitted []*Raised
	later       []func()

	// frozen counts the rounds that this rank has joined, here and at ancestors, and
	// that are open: as long as it is not 0, nothing is agreed here (H5).
	frozen     int
	generation int
	epoch      transport.Epoch

	scopes *Scope // of Try and Guard calls that are running: a list
	told   int    // verdicts of it and its ancestors that the program was told
	tries  int    // outermost Try calls since the last of them
	votes  []*Vote

	ranks     []int // of the members, in the world; nil: the same numbers
	ascending bool  // ranks are
	// everywhere says that all members have their sides, or get them whatever their
	// programs do.
	everywhere bool

	failed []int // the dead, in the order in which this rank learned of them
	acked  int   // the first so many are acknowledged
}
