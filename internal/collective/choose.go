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
}

// ChooserFor returns the Chooser of a communicator.
func ChooserFor(c transport.Comm) Chooser {
	chooser := Chooser{machine, c.Size()}
	if c.Features().SharedCores {
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

// Forced maps the names of operations to those of algorithms that replace the table's choice. It is
// for tests and measurements.
var Forced map[string]string

// pick returns the algorithm for an operation on the given number of bytes.
func (c Chooser) pick(op operation, bytes int) step {
	o := &Operations[op]
	if name, forced := Forced[o.Name]; forced {
		for _, a := range o.Algorithms {
			if a.Name == name {
				return a.step
			}
		}
	}
	rules := o.rules[c.kind]
	if rules == nil {
		rules = o.rules[machine]
	}
	for _, r := range rules {
		if (r.ranks == 0 || c.ranks <= r.ranks) && (r.bytes == 0 || bytes <= r.bytes) {
			return r.use
		}
	}
	panic("collective: no rule for " + o.Name)
}

// Barrier returns a barrier.
func (c Chooser) Barrier(k *Kept) Algorithm {
	if algorithm := c.pick(barrier, 0); algorithm != nil {
		return k.begin(algorithm)
	}
	return Barrier{}
}

// Bcast returns a broadcast.
func (c Chooser) Bcast(k *Kept, buf []byte, root int) Algorithm {
	a := k.begin(c.pick(bcast, len(buf)))
	a.Recv, a.root = buf, root
	return a
}

// Reduce returns a reduction to root.
func (c Chooser) Reduce(k *Kept, r *Reduction, root int) Algorithm {
	a := k.begin(c.pick(reduce, r.len()))
	a.Reduction, a.root = *r, root
	return a
}

// Allreduce returns a reduction to all.
func (c Chooser) Allreduce(k *Kept, r *Reduction) Algorithm {
	a := k.begin(c.pick(allreduce, r.len()))
	a.Reduction = *r
	return a
}

// ReduceScatter returns a reduction whose result is divided among the ranks, as parts say. Recv is
// this rank's part of the result.
func (c Chooser) ReduceScatter(k *Kept, r *Reduction, parts Parts) Algorithm {
	a := k.begin(c.pick(reduceScatter, len(r.Send)))
	a.Reduction, a.parts = *r, parts
	return a
}

// Allgather gathers parts of equal length at all ranks.
func (c Chooser) Allgather(k *Kept, send, recv []byte) Algorithm {
	return k.exchange(c.pick(allgather, len(send)), send, recv, 0)
}

// Allgatherv is Allgather for parts of different lengths.
func (c Chooser) Allgatherv(k *Kept, send, recv []byte, parts Parts) Algorithm {
	a := k.exchange(c.pick(allgatherv, len(recv)/c.ranks), send, recv, 0)
	a.parts = parts
	return a
}

// Gather gathers parts of equal length at root.
func (c Chooser) Gather(k *Kept, send, recv []byte, root int) Algorithm {
	return k.exchange(c.pick(gather, len(send)), send, recv, root)
}

// Scatter distributes parts of equal length from root.
func (c Chooser) Scatter(k *Kept, send, recv []byte, root int) Algorithm {
	return k.exchange(c.pick(scatter, len(recv)), send, recv, root)
}

// Alltoall exchanges parts of equal length.
func (c Chooser) Alltoall(k *Kept, send, recv []byte) Algorithm {
	return k.exchange(c.pick(alltoall, len(send)/c.ranks), send, recv, 0)
}

// exchange returns the Call of an operation that combines nothing.
func (k *Kept) exchange(algorithm step, send, recv []byte, root int) *Call {
	a := k.begin(algorithm)
	a.Send, a.Recv, a.root = send, recv, root
	return a
}

// Scan combines each rank's value with those of the ranks before it. An exclusive scan leaves the
// rank's own value out. Recv gets the result in both.
func (c Chooser) Scan(k *Kept, r *Reduction, exclusive bool) Algorithm {
	a := k.begin(c.pick(scan, r.len()))
	a.Reduction, a.exclusive = *r, exclusive
	return a
}
