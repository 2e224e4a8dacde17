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
	kind  kind
	ranks int
	board bool // there is a board
}

// ChooserFor returns the Chooser of a communicator.
func ChooserFor(c transport.Comm) Chooser {
	f, chooser := c.Features(), Chooser{kind: machine, ranks: c.Size()}
	_, chooser.board = c.(transport.Board) // not if c wraps another
	chooser.board = chooser.board && f.Board && c.Size() > 1
	if f.SharedCores {
		chooser.kind = shared
		return chooser
	}
	for r := range c.Size() {
		if c.Machine(r) != c.Machine(0) {
			chooser.kind = hosts
		}
	}
	return chooser
}

// ByMessages returns the Chooser of operations that need messages: those that are not begun by
// Exchange.Call.
func (c Chooser) ByMessages() Chooser {
	c.board = false
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
			if a.Name == name && (a.step != nil || c.board) {
				return a.step
			}
		}
	}
	rules := o.rules[c.kind]
	if rules == nil {
		rules = o.rules[machine]
	}
	for _, r := range rules {
		if (r.ranks == 0 || c.ranks <= r.ranks) && (r.bytes == 0 || bytes <= r.bytes) && (r.use != nil || c.board) {
			return r.use
		}
	}
	panic("collective: no rule for " + o.Name)
}

// mostOnBoard bounds the bytes that a rank moves or combines for all. Meanwhile no other rank makes
// a call or, after an error, leaves one.
const mostOnBoard = 4 << 20

// of is pick for a Call with these arguments, which it prepares for the board.
func (c Chooser) of(op operation, bytes int, k *Kept, args arguments) Algorithm {
	work := c.ranks * bytes
	if op == allgather || op == alltoall {
		work *= c.ranks
	}
	if args.Ordered || work > mostOnBoard { // a function may do anything, and take any time
		c.board = false
	}
	a := k.begin()
	a.arguments = args
	if a.algorithm = c.pick(op, bytes); a.algorithm == nil {
		a.onBoard(op)
	}
	return a
}

// Barrier returns a barrier.
func (c Chooser) Barrier(k *Kept) Algorithm { return c.of(barrier, 0, k, arguments{}) }

// Bcast returns a broadcast.
func (c Chooser) Bcast(k *Kept, buf []byte, root int) Algorithm {
	return c.exchange(bcast, len(buf), k, nil, buf, root)
}

// Reduce returns a reduction to root.
func (c Chooser) Reduce(k *Kept, r *Reduction, root int) Algorithm {
	return c.of(reduce, r.len(), k, arguments{Reduction: *r, root: root})
}

// Allreduce returns a reduction to all.
func (c Chooser) Allreduce(k *Kept, r *Reduction) Algorithm {
	return c.of(allreduce, r.len(), k, arguments{Reduction: *r})
}

// ReduceScatter returns a reduction whose result is divided among the ranks, as parts say. Recv is
// this rank's part of the result.
func (c Chooser) ReduceScatter(k *Kept, r *Reduction, parts Parts) Algorithm {
	return c.of(reduceScatter, len(r.Send), k, arguments{Reduction: *r, parts: parts})
}

// Allgather gathers parts of equal length at all ranks.
func (c Chooser) Allgather(k *Kept, send, recv []byte) Algorithm {
	return c.exchange(allgather, len(send), k, send, recv, 0)
}

// Allgatherv is Allgather for parts of different lengths.
func (c Chooser) Allgatherv(k *Kept, send, recv []byte, parts Parts) Algorithm {
	args := arguments{Reduction: Reduction{Send: send, Recv: recv}, parts: parts}
	return c.of(allgatherv, len(recv)/c.ranks, k, args)
}

// Gather gathers parts of equal length at root.
func (c Chooser) Gather(k *Kept, send, recv []byte, root int) Algorithm {
	return c.exchange(gather, len(send), k, send, recv, root)
}

// Scatter distributes parts of equal length from root.
func (c Chooser) Scatter(k *Kept, send, recv []byte, root int) Algorithm {
	return c.exchange(scatter, len(recv), k, send, recv, root)
}

// Alltoall exchanges parts of equal length.
func (c Chooser) Alltoall(k *Kept, send, recv []byte) Algorithm {
	return c.exchange(alltoall, len(send)/c.ranks, k, send, recv, 0)
}

// exchange is of for an operation that combines nothing.
func (c Chooser) exchange(op operation, bytes int, k *Kept, send, recv []byte, root int) Algorithm {
	return c.of(op, bytes, k, arguments{Reduction: Reduction{Send: send, Recv: recv}, root: root})
}

// Scan combines each rank's value with those of the ranks before it. An exclusive scan leaves the
// rank's own value out. Recv gets the result in both.
func (c Chooser) Scan(k *Kept, r *Reduction, exclusive bool) Algorithm {
	return c.of(scan, r.len(), k, arguments{Reduction: *r, exclusive: exclusive})
}
