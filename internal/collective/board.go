package collective

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Where ranks share memory, short operations are carried out on a board: see transport.Board.
//
// Goroutine ranks read and write the buffers of the others. So each byte is copied or combined
// once, and no rank is woken twice. The work depends on the number of ranks only at the last rank
// to come, or at the root.
//
// Processes send each other their parts. Each carries out the operation for itself, in the order of
// ranks, so all have the same result.

// flows are those of the operations that a board can carry out.
var flows = [operations]transport.Flow{
	bcast: transport.FromRoot, scatter: transport.FromRoot, gather: transport.ToRoot, reduce: transport.ToRoot,
	scan: transport.Onward,
}

// onBoard prepares a Call for a board.
func (a *Call) onBoard(op operation) {
	a.op = op
	send, recv := a.Send, a.Recv
	if op == bcast {
		send = recv
	}
	if send == nil {
		send = recv
	}
	a.meeting = transport.Meeting{Part: transport.Part{Send: send, Recv: recv}, Flow: flows[op], Root: a.root, Carrier: a}
}

// Call makes the collective call that x.Signature describes, and begins the operation, on the board
// or by messages. If the operation ends at once, it does not call done, but returns the error.
func (x *Exchange) Call(comm transport.Comm, epoch transport.Epoch, a Algorithm, done Ender) (ended bool, err error) {
	call, ok := a.(*Call)
	if !ok || call.meeting.Carrier == nil {
		x.open(comm, epoch, transport.CollectiveTag(comm.Call(epoch, x.Signature)), a, done)
		return x.run()
	}
	x.open(comm, epoch, 0, a, done)
	x.step, x.more = 1, false
	x.requests = x.requests[:0]
	r := x.add(transport.Joining, call.root, nil)
	r.Meeting, call.meeting.Soon = &call.meeting, x.Soon
	if call.share > 0 && call.combines() {
		call.keepState()
		call.arrived = x.Scratch(x.size * call.share)
	}
	if !comm.(transport.Board).Meet(r) {
		return false, nil
	}
	return x.met(r.Err)
}

// met ends a call that has met. Where ranks do not see each other's buffers, this one has what it
// needs of the others.
func (x *Exchange) met(err error) (ended bool, _ error) {
	if a := x.algorithm.(*Call); err == nil && a.share > 0 {
		err = x.finish(a)
	}
	return x.end(err)
}

func (x *Exchange) finish(a *Call) (err error) {
	defer future.Catch(&err) // a reduction may be the user's function
	a.finish(x.rank)
	return nil
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
				copy(p.Recv, a.parts.part(sum, to))
			}
		}
		giveBack(borrowed)
	case scan:
		n := len(parts[0].Send)
		borrowed := borrow(2 * n)
		sum, next := borrowed[:n], borrowed[n:2*n]
		copy(sum, parts[0].Send)
		if !a.exclusive {
			place(parts[0].Recv, sum)
		}
		for _, p := range parts[1:] {
			a.Op(next, sum, p.Send) // before Recv changes, which may be Send
			if sum, next = next, sum; a.exclusive {
				copy(p.Recv, next)
			} else {
				copy(p.Recv, sum)
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

// combines says whether the operation is a reduction.
func (a *Call) combines() bool {
	return a.op == reduce || a.op == allreduce || a.op == reduceScatter || a.op == scan
}

// needs returns how many bytes a rank that meets n-1 others needs of each.
func (a *Call) needs(n int) int {
	switch m := &a.meeting; a.op {
	case bcast, scatter, reduceScatter:
		return len(m.Recv)
	case alltoall:
		return len(m.Recv) / n
	default:
		return len(m.Send)
	}
}

// For returns the bytes of this rank that a rank needs, which may be this one.
func (a *Call) For(rank int) []byte {
	send := a.meeting.Send
	switch a.op {
	case scatter, alltoall:
		return send[rank*a.share:][:a.share]
	case reduceScatter:
		return a.parts.part(send, rank)
	}
	return send
}

// Take puts the bytes of a rank where they belong. Values stay apart until all have come, because
// they are combined in the order of ranks.
func (a *Call) Take(from int, bytes []byte) error {
	if len(bytes) != a.share {
		return &LengthError{from, len(bytes), a.share}
	}
	switch {
	case a.share == 0:
	case a.combines():
		copy(a.arrived[from*a.share:], bytes)
	case a.op == bcast, a.op == scatter:
		copy(a.meeting.Recv, bytes)
	case a.op != barrier:
		copy(a.meeting.Recv[from*a.share:], bytes)
	}
	return nil
}

// finish adds what is this rank's own.
func (a *Call) finish(rank int) {
	rooted := a.op == scatter || a.op == gather || a.op == reduce
	if a.op == barrier || a.op == bcast || rooted && rank != a.root {
		return
	}
	switch recv, own := a.meeting.Recv, a.For(rank); {
	case a.combines():
		a.combineAll(recv, own, rank)
	case a.op == scatter:
		place(recv, own)
	default:
		place(recv[rank*a.share:][:a.share], own)
	}
}

// combineAll combines the values that have arrived and this rank's own, in the order of ranks. Recv
// may be own.
func (a *Call) combineAll(recv, own []byte, rank int) {
	copy(a.arrived[rank*a.share:], own)
	values := a.arrived
	if a.op == scan {
		values = values[:(rank+1)*a.share]
		if a.exclusive {
			values = values[:rank*a.share]
		}
	}
	if len(values) == 0 { // of the first rank
		return
	}
	a.value, a.Recv = values[:a.share], recv
	a.fold(values[a.share:])
	a.settle()
}
