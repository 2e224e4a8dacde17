package collective

import "github.com/mpicx/go-mpicx/internal/transport"

// Where ranks share memory, short operations are carried out on a board: see transport.Board. A
// rank reads and writes the buffers of the others, so each byte is copied or combined once, nobody
// is woken twice, and no rank has work that depends on the number of ranks, except for the last one
// to come or the root.

// flows are those of the operations that a board can carry out.
var flows = [operations]transport.Flow{
	bcast: transport.FromRoot, scatter: transport.FromRoot, gather: transport.ToRoot, reduce: transport.ToRoot,
}

// onBoard prepares a Call for a board.
func (a *Call) onBoard(op operation) {
	a.op = op
	send, recv := a.Send, a.Recv
	if send == nil { // of a Bcast, or in place
		send = recv
	}
	a.meeting = transport.Meeting{Part: transport.Part{Send: send, Recv: recv}, Flow: flows[op], Root: a.root, Carrier: a}
}

// Call makes the collective call that x.Signature describes, and begins the operation, on the board
// or by messages. Like Begin it does not call done if the operation ends at once.
func (x *Exchange) Call(comm transport.Comm, epoch transport.Epoch, a Algorithm, done Ender) (ended bool, err error) {
	call, ok := a.(*Call)
	if !ok || call.meeting.Carrier == nil {
		return x.Begin(comm, epoch, transport.CollectiveTag(comm.Call(epoch, x.Signature)), a, done)
	}
	x.open(comm, epoch, 0, a, done)
	x.step, x.more = 1, false
	x.requests = x.requests[:0]
	r := x.add(transport.Joining, call.root, nil)
	r.Meeting = &call.meeting
	x.ended.Store(started + 1)
	if !comm.(transport.Board).Meet(r) {
		return false, nil
	}
	x.ended.Store(0)
	return x.end(r.Err)
}

// Carry carries out the operation for all ranks or, if there is a root, for this one.
func (a *Call) Carry(parts []transport.Part, rank int) {
	switch recv := a.meeting.Recv; a.op {
	case bcast:
		place(recv, parts[a.root].Send)
	case scatter:
		place(recv, parts[a.root].Send[rank*len(recv):][:len(recv)])
	case gather:
		gatherParts(recv, parts)
	case allgather:
		gatherParts(recv, parts)
		for _, p := range parts {
			place(p.Recv, recv)
		}
	case alltoall:
		for to, p := range parts {
			each := len(p.Recv) / len(parts)
			for from := range parts {
				copy(p.Recv[from*each:][:each], parts[from].Send[to*each:])
			}
		}
	case reduce, allreduce, reduceScatter: // not in Recv, which may be a Send that comes later
		borrowed := borrow(len(parts[0].Send))
		sum, left := borrowed[:len(parts[0].Send)], parts[0].Send
		for _, p := range parts[1:] {
			a.Op(sum, left, p.Send)
			left = sum
		}
		switch a.op {
		case reduce:
			copy(recv, sum)
		case allreduce:
			for _, p := range parts {
				copy(p.Recv, sum)
			}
		default:
			for to, p := range parts {
				copy(p.Recv, a.parts.of(sum, to))
			}
		}
		giveBack(borrowed)
	}
}

func gatherParts(recv []byte, parts []transport.Part) {
	for r, p := range parts {
		place(recv[r*len(p.Send):][:len(p.Send)], p.Send)
	}
}
