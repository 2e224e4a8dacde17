package observe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// An Operation is where a rank is: in an operation that it has begun. It is comparable.
type Operation struct {
	Name string // "Recv", "Barrier"; with a Number the whole call, such as "Bcast(root 1, 3 × float64)"
	// Number counts the collective calls of an epoch, from 1. It is 0 for other operations, and
	// where the Step is given instead.
	Number int
	Step   int // that the rank is in, from 1; 0: the operation has no steps
	// Kind, Peer and Tag are those of the message that the operation waits for. Kind is Idle if it
	// waits for none, or for another one at each rank that shares the Operation.
	Kind      transport.Kind
	Peer, Tag int

	Comm  string // the communicator's name
	Epoch transport.Epoch
	Until string // what the communicator's error channel waits for; "": nothing
}

// Named is the Completer of an operation without steps.
type Named interface{ Operation() string }

// OperationOf returns the operation of a pending request on the communicator comm, as this rank
// knows it.
func OperationOf(r *transport.Request, comm string) Operation {
	o := Operation{Name: r.Kind.String(), Kind: r.Kind, Peer: r.Peer, Tag: r.Tag, Comm: comm, Epoch: r.Epoch}
	switch done := r.Done.(type) {
	case transport.Stepper:
		o.Name, o.Step = done.Step()
	case Named:
		if o.Name = done.Operation(); r.Tag < 0 && r.Tag != transport.AnyTag { // no message has it
			o.Kind = transport.Idle
		}
	}
	return o
}

// SharedOperationOf is OperationOf as all ranks in the operation know it: a collective operation
// has its call and Number, and neither Step nor message.
func SharedOperationOf(r *transport.Request, comm string) Operation {
	o := OperationOf(r, comm)
	if o.Step > 0 && r.Signature != 0 {
		o.Name = r.Signature.String()
	}
	if o.Step > 0 || o.Kind == transport.Idle {
		o = Operation{Name: o.Name, Comm: comm, Epoch: o.Epoch}
		if n := transport.CollectiveNumber(r.Tag); n < transport.Agreements {
			o.Number = n
		}
	}
	return o
}

// String describes the operation: "Recv from rank 5, tag 9 on world.dup1", "Barrier #17 on world",
// "Barrier waits for rank 0 on world", "Scan, step 2: receive from rank 0 on world, epoch 1". The
// first epoch is not mentioned.
func (o Operation) String() string {
	var b strings.Builder
	b.WriteString(o.Name)
	switch {
	case o.Number > 0:
		fmt.Fprintf(&b, " #%d", o.Number)
	case o.Kind == transport.Idle:
	case o.Kind == transport.Joining:
		fmt.Fprintf(&b, " waits for rank %d", o.Peer)
	case o.Step > 0:
		fmt.Fprintf(&b, ", step %d: %v %s", o.Step, o.Kind, o.peer())
	case o.Tag == transport.AnyTag:
		fmt.Fprintf(&b, " %s, any tag", o.peer())
	default:
		fmt.Fprintf(&b, " %s, tag %d", o.peer(), o.Tag)
	}
	if o.Comm != "" {
		b.WriteString(" on " + o.Comm)
	}
	if o.Epoch != 0 {
		fmt.Fprintf(&b, ", epoch %v", o.Epoch)
	}
	if o.Until != "" {
		b.WriteString(", where " + o.Until)
	}
	return b.String()
}

func (o *Operation) peer() string {
	switch {
	case o.Peer == transport.AnySource:
		return "from any rank"
	case o.Kind == transport.Sending:
		return fmt.Sprintf("to rank %d", o.Peer)
	}
	return fmt.Sprintf("from rank %d", o.Peer)
}

// Most is how many operations List describes.
const Most = 4

// List describes the first few of several operations, and says how many more there are. Between two
// is a word. Neighbours on the same communicator share its name.
func List(all []Operation, word string, more int) string {
	if n := len(all) - Most; n > 0 {
		all, more = all[:Most], more+n
	}
	var texts []string
	for i, o := range all {
		if i+1 < len(all) && all[i+1].Comm == o.Comm && all[i+1].Epoch == o.Epoch {
			o.Comm, o.Epoch = "", 0
		}
		texts = append(texts, o.String())
	}
	if more > 0 {
		texts = append(texts, fmt.Sprint(more, " more"))
	}
	return strings.Join(texts, " "+word+" ")
}

// A Position says where a rank is, in the same way at all ranks in the same operations.
type Position struct {
	Returned bool        // the rank's program has returned
	Awaited  []Operation // pending, and a goroutine waits for them
	Pending  []Operation // the other pending ones
	Last     []Operation // the last collective operation of each communicator
}

// Waits says whether the rank waits for what is pending.
func (p *Position) Waits() bool { return p.Returned || len(p.Awaited) > 0 }

// Add adds o to all, unless it is there.
func Add(all *[]Operation, o Operation) {
	if !slices.Contains(*all, o) {
		*all = append(*all, o)
	}
}

func (p *Position) String() string {
	switch {
	case p.Returned:
		return "returned, waits for what it has begun: " + List(slices.Concat(p.Awaited, p.Pending), "and", 0)
	case len(p.Awaited) > 0:
		return List(p.Awaited, "and", 0)
	case len(p.Pending) > 0:
		return "waits for none of what is pending: " + List(p.Pending, "and", 0)
	case len(p.Last) > 0:
		return "computing: nothing pending, last " + List(p.Last, "and", 0)
	}
	return "computing: nothing pending"
}
