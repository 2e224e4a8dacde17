package errchan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// ULFM is a Channel that sees processes die, revokes, and agrees.
//
// Errors and agreements of a family of communicators have one order (H5). Before a rank
// joins a round, it calls Freeze on the communicator and on all that are derived from it, so
// nothing more is decided there. Raise, Join or Unwind passes the earlier decisions on, and
// the verdict contains them. All ranks Complete these decisions, on all these communicators,
// before they Advance. An agreement therefore ends with its decision at every survivor, or
// with an error at every survivor.
//
// The client has these duties. After Noticed the rank joins the round once its program
// is inside an operation. It joins at once if its program has raised a report that no
// verdict has, has unwound, or is over. From then until Resolved the round counts as
// joined and open. If the verdict lacks a report of this rank, Raise came too late:
// this rank has not joined the next round, which Noticed announces. A communicator made
// meanwhile is frozen too. No Complete or Advance may come between Freeze and Join.
// After a final verdict no round comes, and nothing is frozen.
type ULFM interface {
	Channel
	// Died says that a process has died, which this rank may know before the
	// channel does. It tells nobody else.
	Died(rank int)
	// Lose gives every rank a final verdict, because this rank needs one of the dead.
	// Dead are the dead ranks that it has been told of, ascending.
	Lose(dead []int)
	// Unwind is Raise with corrupt, by a rank whose program is about to Leave. The
	// verdict counts that rank among the dead.
	Unwind(data []byte, settled []Settled)
	// Revoke tells all ranks that the communicator is revoked.
	Revoke()
	// Reserve takes this rank's place in the next agreement of an epoch. All ranks
	// reserve in the same order; agreements that create communicators have an order of
	// their own. The rank may propose later.
	Reserve(e transport.Epoch, call Calls) Agreement
	// Abandon ends this rank's proposals to create communicators, now and later, with
	// cause. It is needed where other ranks may never make theirs.
	Abandon(cause error)
	// Finish ends this rank's proposals, now and later, with cause: no rank takes part any more.
	Finish(cause error)
	// Part says that this rank's program has closed the communicator, and that others may not have.
	// In agreements that they begin there this rank counts as dead, once those are over for which
	// it waits itself.
	Part()
	// Propose makes this rank's proposal. The function gets the decision, or the error
	// if Advance or Release came before, on any goroutine. It must not block.
	Propose(Agreement, Proposal, func(*Decision, error))
	// Freeze stops decisions here until Advance allows them. It returns the agreements
	// of recent epochs that may have ended here and not elsewhere. It may be called
	// again while frozen.
	Freeze() []Settled
	// Complete ends this rank's proposals to agreements that were decided, according to a
	// verdict. It is called before Advance. It ignores agreements of other
	// communicators.
	Complete([]Settled)
	// Advance begins the epoch after an error of the given generation, as
	// transport.Comm's Advance does. Proposals of the old epoch end with cause. Frozen
	// says that a round of this communicator, or of one it is derived from, which this
	// rank has joined, is still open. Lost says that a member has died before it
	// consented to the error. If both hold, the verdict of the open round may have a
	// decision of that member, so proposals may stay pending. They end at the latest with
	// the first Advance that is not frozen.
	Advance(generation int, cause error, frozen, lost bool)
}

// A Settled is the end of an agreement of one communicator, as a verdict has it.
type Settled struct {
	Comm uint64 // the digest of the communicator: see transport.Name
	ID   Agreement
	// Decision is nil if an error has ended the agreement, at some rank, without one.
	Decision *Decision
	By       int // the rank of Comm that decided
}

// A ULFMClient is the Client of a ULFM channel.
type ULFMClient interface {
	Client
	// Died says that the process of a member has died. It comes once for each death.
	Died(rank int)
	// Revoked says that the communicator is revoked, as this rank has learned from rank by.
	Revoked(by int)
}

// An Agreement identifies one agreement of a communicator.
type Agreement struct {
	Epoch   transport.Epoch
	Creates bool   // it creates a communicator; such agreements are numbered separately
	Seq     uint64 // its number in the epoch, from 0
}

// Calls are the operations that take part in an agreement: one, unless ranks call
// different ones in the same place.
type Calls uint16

// The operations that agree, by MPI's names.
const (
	Agree Calls = 1 << iota
	Shrink
	Dup
	Split
	SplitShared
	Replace
	AgreeFailed
	CreateIntercomm
	Create
	CartCreate
	CartSub
	GraphCreate
	Merge
	Stopping
	Background // of a package above: see hook.Background
)

// AnyCalls is the union of all operations.
const AnyCalls = Background<<1 - 1

// repairs are the operations that work on a broken communicator.
const repairs = Agree | Shrink | Replace | AgreeFailed

// Creates says whether an operation of c is numbered with those that create a communicator, which a
// revoke ends: all are, except for repairs.
func (c Calls) Creates() bool { return c&^repairs != 0 }

func (c Calls) String() string {
	var names []string
	for i, name := range []string{"Agree", "Shrink", "Dup", "Split", "SplitShared", "Replace", "AgreeFailed",
		"CreateIntercomm", "Create", "CartCreate", "CartSub", "GraphCreate", "Merge", "Stopping", "Background"} {
		if c>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

// A Proposal is what one rank contributes to an agreement.
type Proposal struct {
	Call  Calls
	Flag  int
	Acked []int  // the dead that the rank's program has acknowledged, ascending
	Note  []byte // further data; the decision has the greatest Note
}

// A Decision is the result of an agreement, equal at all survivors. The ranks of one
// process may share it, so it must not be changed.
type Decision struct {
	Calls Calls
	Flag  int   // bitwise AND of the proposals
	Dead  []int // the dead that any proposing rank knew of, ascending
	// Unacked are the dead that some proposing rank had not acknowledged.
	Unacked []int
	Note    []byte // the greatest of the proposals', as bytes.Compare orders them

	meaning *memo // nil: no ranks share the decision
}

func (d Decision) String() string {
	return fmt.Sprintf("%v, flag %d, dead %v, not acknowledged %v", d.Calls, d.Flag, d.Dead, d.Unacked)
}

// Shared returns a copy of d that ranks may share.
func (d Decision) Shared() *Decision {
	d.meaning = new(memo)
	return &d
}

// Meaning returns read(d). It calls read once for all the ranks that share d.
func (d *Decision) Meaning(read func(*Decision) any) any {
	if d.meaning == nil {
		return read(d)
	}
	return d.meaning.get(func() any { return read(d) })
}

// ErrOver is the error of a proposal to an agreement whose epoch is over.
var ErrOver = errors.New("an error came before the agreement")

// ErrClosed is the error of a proposal after Release.
var ErrClosed = errors.New("the communicator is closed")
