package errchan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// ULFM is a Channel that sees processes die, revokes, and agrees.
//
// Errors and agreements of a family of communicators are one order (H5). Who joins a
// round of errors calls Freeze, first, on its communicator and all derived from it:
// there nothing is decided any more. What was decided before goes with Raise, Join or
// Unwind into the verdict, and all ranks Complete it, on all those communicators,
// before they Advance. So an agreement ends with its decision at every survivor, or
// with an error at every one.
//
// The client's duties. Noticed has a rank join every round, once its program is inside
// an operation; at once if that has raised a report that no verdict has, has unwound,
// or is over. From then on until Resolved the round is one that this rank has joined
// and that is open. Where that verdict lacks a report of this rank, Raise came too late:
// this rank has not joined the next round, and is told of it by Noticed. A communicator
// that is made meanwhile is frozen too. Freeze and Join are one step as far as Complete
// and Advance are concerned. After a final verdict no round comes: Freeze nothing.
type ULFM interface {
	Channel
	// Died says that a process has died, which this rank may know before the
	// channel does. It tells nobody else.
	Died(rank int)
	// Lose has every rank get a verdict that is final, because this rank needs one
	// of the dead, ascending, that it has been told of.
	Lose(dead []int)
	// Unwind is Raise, corrupt, by a rank whose program is about to Leave: the
	// verdict has it among the dead.
	Unwind(data []byte, settled []Settled)
	// Leave says that the rank's program has ended. It takes part in agreements as one
	// of the dead; the client still joins rounds of errors.
	Leave()
	// Revoke tells all ranks that the communicator is revoked.
	Revoke()
	// Reserve takes this rank's place in the next agreement of an epoch for a call. All
	// ranks reserve in the same order, those to create communicators apart, and
	// propose when they can.
	Reserve(e transport.Epoch, call Calls) Agreement
	// Abandon ends this rank's proposals to create communicators, and those to come,
	// with cause: others may never make theirs.
	Abandon(cause error)
	// Propose is this rank's contribution. Done is told how the agreement ended,
	// on any goroutine, or that Advance came before. It must not block.
	Propose(Agreement, Proposal, func(*Decision, error))
	// Freeze has nothing decided here until Advance says so. It returns the agreements
	// of recent epochs that may have ended here and not elsewhere. It may be called
	// when that is so already.
	Freeze() []Settled
	// Complete ends those of this rank's proposals that were decided, according to a
	// verdict that has come, before Advance. What is of other communicators does
	// nothing.
	Complete([]Settled)
	// Advance begins the epoch after an error of the given generation, as that of
	// transport.Comm does. Proposals of the one before end with cause: now, or, if the
	// epoch begins frozen, no later than with the first Advance that is not. Frozen: a
	// round of this communicator, or of one it is derived from, that this rank has
	// joined is still open. Its verdict may have the decision.
	Advance(generation int, cause error, frozen bool)
}

// A Settled is how an agreement ended on one of a family of communicators.
type Settled struct {
	Comm uint64 // which one: a digest of how it was made, the same at all ranks
	ID   Agreement
	// Decision is nil if an error came before it: the agreement is over at some rank.
	Decision *Decision
	By       int // the rank of Comm that decided
}

// Identify returns the digest that says which communicator has a name among those
// that are made from parent; the world's is 0.
func Identify(parent uint64, name transport.Name) uint64 {
	id := parent
	for _, part := range [...]uint64{uint64(name.Epoch), name.Seq, uint64(name.Color), name.Without} {
		id = scramble(id + scramble(part))
	}
	return id
}

// scramble is a permutation in which each bit of x bears on all others (Steele, Lea and
// Flood, Fast Splittable Pseudorandom Number Generators, 2014).
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A ULFMClient is the Client of a ULFM channel.
type ULFMClient interface {
	Client
	// Died: the process of a member has died. It is told once.
	Died(rank int)
	// Revoked: the communicator is revoked, and rank by is who this one learned it
	// from.
	Revoked(by int)
}

// An Agreement is one of the agreements of a communicator.
type Agreement struct {
	Epoch   transport.Epoch
	Creates bool   // a communicator: these count apart from the others
	Seq     uint64 // in the epoch, from 0
}

// Calls are the operations that an agreement is part of: one, unless ranks call
// different ones in the same place.
type Calls uint8

// The operations that agree, by MPI's names.
const (
	Agree Calls = 1 << iota
	Shrink
	Dup
	Split
)

func (c Calls) String() string {
	var names []string
	for i, name := range []string{"Agree", "Shrink", "Dup", "Split"} {
		if c>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

// A Proposal is what a rank brings to an agreement.
type Proposal struct {
	Call  Calls
	Flag  int
	Acked []int // the dead that its program has acknowledged, ascending
}

// A Decision is what all survivors get from an agreement. Like verdicts, they may
// share one.
type Decision struct {
	Calls Calls
	Flag  int   // bitwise AND of those contributed
	Dead  []int // that a contributor knew of, ascending
	// Unacked are those of the dead that not all contributors had acknowledged.
	Unacked []int

	meaning *memo // nil: not shared
}

func (d Decision) String() string {
	return fmt.Sprintf("%v, flag %d, dead %v, not acknowledged %v", d.Calls, d.Flag, d.Dead, d.Unacked)
}

// Shared returns d for ranks to share.
func (d Decision) Shared() *Decision {
	d.meaning = new(memo)
	return &d
}

// Meaning returns what read makes of the decision, which is asked once for all the
// ranks that share it.
func (d *Decision) Meaning(read func(*Decision) any) any {
	if d.meaning == nil {
		return read(d)
	}
	return d.meaning.of(func() any { return read(d) })
}

// ErrOver is the error of a proposal to an agreement of an epoch that is over.
var ErrOver = errors.New("an error came before the agreement")
