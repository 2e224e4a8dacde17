package ulfmbackend

import (
	"fmt"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A Kind says what a Message is.
type Kind byte

const (
	// Notice says that a round of Errors is open.
	Notice Kind = iota + 1
	// Revoke says that the communicator is revoked.
	Revoke
	// Up has the combined proposals of a subtree to an agreement.
	Up
	// Decided has the decision of an agreement.
	Decided
	// Stop has a request to stop.
	Stop
)

func (k Kind) String() string {
	if k < Notice || k > Stop {
		return fmt.Sprintf("Kind(%d)", byte(k))
	}
	return [...]string{"notice", "revoke", "up", "decided", "stop"}[k-Notice]
}

// A Message goes from one rank to another.
type Message struct {
	Kind   Kind
	Stream Stream            // of Up and Decided
	ID     errchan.Agreement // of Notice, Up and Decided
	// Origin is, in a Notice, Revoke and Stop, the root of the tree that the flood follows first.
	// In a Decided of a stream other than Errors it is the root that has decided.
	Origin  int
	Corrupt bool   // of Notice, and of Up in Errors: the verdict will be final
	Value   *Value // of Up and Decided
	Request []byte // of Stop
	// The meaning of a Decided's Value: a Verdict in Errors, a Decision in other streams.
	Verdict  *errchan.Verdict
	Decision *errchan.Decision

	vote    uint64 // of Up and Decided: see votes
	encoded []byte // as received, or as first sent
}

// newMessage returns a message with a value, in one allocation.
func newMessage(kind Kind, k Stream, id errchan.Agreement, v Value) *Message {
	m := &struct {
		Message
		v Value
	}{Message{Kind: kind, Stream: k, ID: id}, v}
	m.Value = &m.v
	switch {
	case kind == Up:
	case k == Errors:
		m.Verdict = v.verdict(id.Seq)
	default:
		m.Decision = v.decision().Shared()
	}
	return &m.Message
}

// An Output is an action of a Machine that the caller carries out: a message to send,
// or something to tell the client.
type Output struct {
	To       int // of Message
	Message  *Message
	Noticed  *errchan.Noticed
	Resolved *errchan.Verdict
	Agreed   *Agreed
	Revoked  *Told
	Died     *Told
	Asked    []byte // a request to stop
	Released bool   // all ranks have closed the communicator; this is the last output
	// Calls of the library, if the machine uses one.
	Revoke bool     // begin its revoke
	Vote   []uint32 // begin its agreement on the bitwise AND of these words
}

// Agreed is the end of an agreement that a program proposed to.
type Agreed struct {
	ID       errchan.Agreement
	Decision *errchan.Decision
}

// Told names a rank: the one that died, or the one from which a revoke was learned.
type Told struct{ Rank int }
