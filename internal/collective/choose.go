package collective

import "github.com/mpicx/go-mpicx/internal/transport"

// A kind says what connects the ranks of a communicator.
type kind int

// The kinds: the table has rules for each.
const (
	shared  kind = iota // goroutines, which share cores
	machine             // processes of one machine
	hosts               // processes of several machines
	kinds
)

// A Chooser chooses the algorithms of a communicator's operations. All ranks choose the same.
type Chooser struct {
	kind     kind
	ranks    int
	board    int       // the most bytes that a rank may show on a board; 0: there is none
	division *division // among machines
}

// ChooserFor returns the Chooser of a communicator.
func ChooserFor(c transport.Comm) Chooser {
	f, chooser := c.Features(), Chooser{kind: machine, ranks: c.Size()}
	if _, ok := c.(transport.Board); ok && c.Size() > 1 { // not if c wraps another
		chooser.board = f.Board
	}
	if f.SharedCores {
		chooser.kind = shared
		return chooser
	}
	for r := range c.Size() {
		if c.Machine(r) != c.Machine(0) {
			chooser.kind = hosts
		}
	}
	if chooser.kind == hosts {
		chooser.division = divisionOf(c.Rank(), c.Size(), c.Machine)
	}
	return chooser
}

// ByMessages returns the Chooser of operations that need messages: those that are not begun by
// Exchange.Call.
func (c Chooser) ByMessages() Chooser {
	c.board = 0
	return c
}

// Forced maps the names of operations to those of algorithms that replace the table's choice. It is
// for tests and measurements.
var Forced map[string]string

// pick returns the algorithm for an operation on the given number of bytes. nil: it is the board.
func (c Chooser) pick(op operation, bytes int) step {
	o := &Operations[op]
	if name, forced := Forced[o.Name]; forced {
		for _, a := range o.Algorithms {
			if a.Name == name && (a.step != nil || c.board > 0) {
				return a.step
			}
		}
	}
	rules := o.rules[c.kind]
	if rules == nil {
		rules = o.rules[machine]
	}
	for _, r := range rules {
		if (r.ranks == 0 || c.ranks <= r.ranks) && (r.bytes == 0 || bytes <= r.bytes) && (r.use != nil || c.board > 0) {
			return r.use
		}
	}
	panic("collective: no rule for " + o.Name)
}

// mostOnBoard bounds the bytes that a rank moves or combines for all. Meanwhile no other rank makes
// a call or, after an error, leaves one.
const mostOnBoard = 4 << 20

// prepare picks the algorithm of a Call, and prepares the Call for the board if it runs there.
func (c Chooser) prepare(op operation, bytes int, a *Call) Algorithm {
	work := c.ranks * bytes
	if op == allgather || op == alltoall {
		work *= c.ranks
	}
	// A function may do anything, and take any time.
	if a.Ordered || work > mostOnBoard || bytes > c.board {
		c.board = 0
	}
	if a.Ordered && c.division != nil && !c.division.inOrder { // values would be combined in another order
		c.division = nil
	}
	a.division = c.division
	if a.algorithm = c.pick(op, bytes); a.algorithm == nil {
		a.onBoard(op)
		if c.kind != shared {
			a.share = a.needs(c.ranks)
			a.meeting.Bytes = a.share
		}
	}
	return a
}

// Barrier returns a barrier.
func (c Chooser) Barrier(k *Kept) Algorithm { return c.prepare(barrier, 0, k.begin()) }

// Bcast returns a broadcast.
func (c Chooser) Bcast(k *Kept, buf []byte, root int) Algorithm {
	a := k.begin()
	a.Recv, a.root = buf, root
	return c.prepare(bcast, len(buf), a)
}

// Reduce returns a reduction to root.
func (c Chooser) Reduce(k *Kept, r *Reduction, root int) Algorithm {
	a := k.begin()
	a.Reduction, a.root = *r, root
	return c.prepare(reduce, r.len(), a)
}

// Allreduce returns a reduction to all.
func (c Chooser) Allreduce(k *Kept, r *Reduction) Algorithm {
	a := k.begin()
	a.Reduction = *r
	return c.prepare(allreduce, r.len(), a)
}

// ReduceScatter returns a reduction whose result is divided among the ranks, as parts say. Recv is
// this rank's part of the result.
func (c Chooser) ReduceScatter(k *Kept, r *Reduction, parts Parts) Algorithm {
	a := k.begin()
	a.Reduction, a.parts = *r, parts
	return c.prepare(reduceScatter, len(r.Send), a)
}

// Allgather gathers parts of equal length at all ranks.
func (c Chooser) Allgather(k *Kept, send, recv []byte) Algorithm {
	return c.exchange(k, allgather, len(send), send, recv, 0)
}

// Allgatherv is Allgather for parts of different lengths.
func (c Chooser) Allgatherv(k *Kept, send, recv []byte, parts Parts) Algorithm {
	a := k.begin()
	a.Send, a.Recv, a.parts = send, recv, parts
	return c.prepare(allgatherv, len(recv)/c.ranks, a)
}

// Gather gathers parts of equal length at root.
func (c Chooser) Gather(k *Kept, send, recv []byte, root int) Algorithm {
	return c.exchange(k, gather, len(send), send, recv, root)
}

// Scatter distributes parts of equal length from root.
func (c Chooser) Scatter(k *Kept, send, recv []byte, root int) Algorithm {
	return c.exchange(k, scatter, len(recv), send, recv, root)
}

// Alltoall exchanges parts of equal length.
func (c Chooser) Alltoall(k *Kept, send, recv []byte) Algorithm {
	return c.exchange(k, alltoall, len(send)/c.ranks, send, recv, 0)
}

// exchange returns the Call of an operation that combines nothing.
func (c Chooser) exchange(k *Kept, op operation, bytes int, send, recv []byte, root int) Algorithm {
	a := k.begin()
	a.Send, a.Recv, a.root = send, recv, root
	return c.prepare(op, bytes, a)
}

// Scan combines each rank's value with those of the ranks before it. An exclusive scan leaves the
// rank's own value out. Recv gets the result in both.
func (c Chooser) Scan(k *Kept, r *Reduction, exclusive bool) Algorithm {
	a := k.begin()
	a.Reduction, a.exclusive = *r, exclusive
	return c.prepare(scan, r.len(), a)
}
