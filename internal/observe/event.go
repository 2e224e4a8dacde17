package observe

// A Kind is the kind of an Event.
type Kind string

// The kinds of events.
const (
	Start  Kind = "start"  // the rank begins: Size, and whether it is a Spare or Fresh
	End    Kind = "end"    // the rank's program has ended, by the error Text if there is one
	Wait   Kind = "wait"   // a goroutine of the rank is blocked in Op
	Waited Kind = "waited" // it is no longer blocked, after a time of For

	Fault   Kind = "fault"   // the rank has raised the error Text
	Unsent  Kind = "unsent"  // the error Text of the rank came after another rank's, and is told to nobody
	Dies    Kind = "dies"    // the rank is about to die
	Death   Kind = "death"   // the rank has learned that rank By has died
	Revoke  Kind = "revoke"  // the rank has learned from rank By that Comm is revoked
	Notice  Kind = "notice"  // the rank has learned from rank By that there is an error
	Join    Kind = "join"    // the rank consents to the end of the round
	Verdict Kind = "verdict" // the rank has the verdict, which is Text
	Epoch   Kind = "epoch"   // Comm leaves the epoch of the error

	Repair  Kind = "repair"  // the rank begins Op, the Round-th agreement of Comm in Epoch
	Agree   Kind = "agree"   // the agreement is decided
	Shrink  Kind = "shrink"  // decided, and the rank is rank As of the communicator Text
	Replace Kind = "replace" // the same, for a Replace
	Restore Kind = "restore" // the rank has gone back to the version Text of a checkpoint
	Drop    Kind = "drop"    // the program has dropped its Comm of Comm without a Close or Release
	Stop    Kind = "stop"    // the rank has learned that rank By has asked for a stop of Comm, as Text says
	Mark    Kind = "mark"    // the program says Text
)

// isOperation says whether lines of the kind may be overwritten in a timeline.
func (k Kind) isOperation() bool { return k == Wait || k == Waited || k == Repair || k == Agree }

// An Event is what has happened to one rank. Ranks are numbers in the job, where spares and fresh
// ranks come after the others.
type Event struct {
	T     int64  `json:"t"`   // nanoseconds after the Head's Clock, by a clock that never jumps
	Run   int    `json:"run"` // number of the process's Run: 1 is the first
	Rank  int    `json:"rank"`
	Kind  Kind   `json:"event"`
	ID    int64  `json:"id,omitempty"`  // of a Wait, and its Waited
	For   int64  `json:"for,omitempty"` // nanoseconds
	Op    string `json:"op,omitempty"`
	Comm  string `json:"comm,omitempty"`
	Round uint64 `json:"round,omitempty"`
	Epoch string `json:"epoch,omitempty"`
	By    *int   `json:"by,omitempty"`
	Final bool   `json:"final,omitempty"` // Comm is corrupted, or will be
	Size  int    `json:"size,omitempty"`
	Spare bool   `json:"spare,omitempty"`
	Fresh bool   `json:"fresh,omitempty"` // a fresh rank
	As    *int   `json:"as,omitempty"`
	Text  string `json:"text,omitempty"`

	// These are in the log only.

	Code     int `json:"-"` // of a Fault
	Failures int `json:"-"` // the number of failures in a Verdict

	Calls string `json:"-"` // of a Death: the collective calls of this rank and the dead one where they differ
}
