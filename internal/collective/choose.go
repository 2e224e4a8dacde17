package collective

import "github.com/mpicx/go-mpicx/internal/transport"

// A Kind says what connects the ranks of a communicator.
type Kind int

// The kinds: the table has rules for each.
const (
	Shared  Kind = iota // goroutines, which share cores
	Machine             // processes of one machine
	Hosts               // processes of several machines
	kinds
)

// A Chooser chooses the algorithms of a communicator's operations. All ranks choose the same.
type Chooser struct {
	kind  Kind
	ranks int
}

// ChooserFor returns the Chooser of a communicator.
func ChooserFor(c transport.Comm) Chooser {
	chooser := Chooser{Machine, c.Size()}
	if c.Features().SharedCores {
		chooser.kind = Shared
		return chooser
	}
	for r := range c.Size() {
		if c.Machine(r) != c.Machine(0) {
			chooser.kind = Hosts
		}
	}
	return chooser
}

// Forced maps the names of operations to those of algorithms that replace the table's choice if
// they suit the call. It is for tests and measurements.
var Forced map[string]string

// pick returns the name of the algorithm for an operation on the given number of bytes.
func (c Chooser) pick(op operation, bytes int) string {
	if Forced != nil {
		if name := Forced[Operations[op].Name]; name != "" {
			return name
		}
	}
	for _, r := range table[op][c.kind] {
		if (r.ranks == 0 || c.ranks <= r.ranks) && (r.bytes == 0 || bytes <= r.bytes) {
			return r.use
		}
	}
	panic("collective: no rule for " + Operations[op].Name)
}

// Barrier returns the algorithm for a barrier.
func (c Chooser) Barrier(k *Kept) Algorithm {
	switch c.pick(barrier, 0) {
	case "tree":
		return Barrier{}
	case "star":
		a := again[AllgatherStar](k, barrier)
		return a
	}
	a := again[AllreduceDoubling](k, barrier)
	a.Reduction = Reduction{Op: func(_, _, _ []byte) {}}
	return a
}

// Bcast returns the algorithm for a broadcast.
func (c Chooser) Bcast(k *Kept, buf []byte, root int) Algorithm {
	switch c.pick(bcast, len(buf)) {
	case "scatter":
		return &BcastScatter{Buf: buf, Root: root}
	case "chain":
		return &BcastChain{Buf: buf, Root: root, Segment: chainSegment}
	case "star":
		a := again[BcastStar](k, bcast)
		a.Buf, a.Root = buf, root
		return a
	}
	a := again[Bcast](k, bcast)
	a.Buf, a.Root = buf, root
	return a
}

// Reduce returns the algorithm for a reduction to root.
func (c Chooser) Reduce(k *Kept, r *Reduction, root int) Algorithm {
	switch name := c.pick(reduce, r.len()); {
	case name == "star":
		a := again[ReduceStar](k, reduce)
		a.Reduction, a.Root = *r, root
		return a
	case name == "chain" && (root == 0 || !r.Ordered):
		return &ReduceChain{Reduction: *r, Root: root, Segment: r.segment()}
	}
	a := again[Reduce](k, reduce)
	a.Reduction, a.Root = *r, root
	return a
}

// Allreduce returns the algorithm for a reduction to all.
func (c Chooser) Allreduce(k *Kept, r *Reduction) Algorithm {
	switch c.pick(allreduce, r.len()) {
	case "tree":
		a := again[AllreduceTree](k, allreduce)
		a.Reduction = *r
		return a
	case "rabenseifner":
		return &Rabenseifner{Reduction: *r}
	case "parts":
		return &AllreduceParts{Reduction: *r}
	case "star":
		a := again[AllreduceStar](k, allreduce)
		a.Reduction = *r
		return a
	}
	a := again[AllreduceDoubling](k, allreduce)
	a.Reduction = *r
	return a
}

// ReduceScatter returns the algorithm for a reduction whose result is divided among the ranks,
// as parts say. Acc is this rank's part of the result.
func (c Chooser) ReduceScatter(k *Kept, r *Reduction, parts Parts) Algorithm {
	switch c.pick(reduceScatter, len(r.Send)) {
	case "tree":
		a := again[ReduceScatterTree](k, reduceScatter)
		a.Reduction, a.Parts = *r, parts
		return a
	case "star":
		a := again[ReduceScatterStar](k, reduceScatter)
		a.Reduction, a.Parts = *r, parts
		return a
	}
	a := again[ReduceScatterDirect](k, reduceScatter)
	a.Send, a.Recv, a.Parts, a.Op = r.Send, r.Acc, parts, r.Op
	return a
}

// Allgather returns the algorithm for gathering parts of equal length at all ranks.
func (c Chooser) Allgather(k *Kept, send, recv []byte) Algorithm {
	switch c.pick(allgather, len(send)) {
	case "tree":
		a := again[Allgather](k, allgather)
		a.Send, a.Recv = send, recv
		return a
	case "star":
		a := again[AllgatherStar](k, allgather)
		a.Send, a.Recv = send, recv
		return a
	}
	parts := k.Parts(c.ranks)
	for i := range parts {
		parts[i] = i * len(send)
	}
	a := again[AllgatherDirect](k, allgather)
	a.Send, a.Buf, a.Parts = send, recv, parts
	return a
}

// Allgatherv is Allgather for parts of different lengths.
func (c Chooser) Allgatherv(k *Kept, send, recv []byte, parts Parts) Algorithm {
	if c.pick(allgatherv, len(recv)/c.ranks) == "tree" {
		a := again[Allgatherv](k, allgatherv)
		a.Send, a.Recv, a.At = send, recv, parts
		return a
	}
	a := again[AllgatherDirect](k, allgatherv)
	a.Send, a.Buf, a.Parts = send, recv, parts
	return a
}

// Gather returns the algorithm for gathering parts of equal length at root.
func (c Chooser) Gather(k *Kept, send, recv []byte, root int) Algorithm {
	if c.pick(gather, len(send)) == "tree" {
		a := again[Gather](k, gather)
		a.Send, a.Recv, a.Root = send, recv, root
		return a
	}
	a := again[GatherDirect](k, gather)
	a.Send, a.Recv, a.Root = send, recv, root
	return a
}

// Scatter returns the algorithm for distributing parts of equal length from root.
func (c Chooser) Scatter(k *Kept, send, recv []byte, root int) Algorithm {
	if c.pick(scatter, len(recv)) == "tree" {
		a := again[Scatter](k, scatter)
		a.Send, a.Recv, a.Root = send, recv, root
		return a
	}
	a := again[ScatterDirect](k, scatter)
	a.Send, a.Recv, a.Root = send, recv, root
	return a
}

// Alltoall returns the algorithm for exchanging parts of equal length.
func (c Chooser) Alltoall(k *Kept, send, recv []byte) Algorithm {
	switch c.pick(alltoall, len(send)/c.ranks) {
	case "bruck":
		a := again[AlltoallBruck](k, alltoall)
		a.Send, a.Recv = send, recv
		return a
	case "star":
		a := again[AlltoallStar](k, alltoall)
		a.Send, a.Recv = send, recv
		return a
	}
	a := again[AlltoallDirect](k, alltoall)
	a.Send, a.Recv = send, recv
	return a
}

// Scan returns the algorithm for combining each rank's value with those of the ranks before it.
// An exclusive scan leaves the rank's own value out. Acc gets the result in both.
func (c Chooser) Scan(k *Kept, r *Reduction, exclusive bool) Algorithm {
	if c.pick(scan, r.len()) == "chain" {
		a := again[ScanChain](k, scan)
		a.Reduction, a.Exclusive, a.Segment = *r, exclusive, r.segment()
		if exclusive {
			a.Acc, a.Result = nil, r.Acc
		}
		return a
	}
	a := again[Scan](k, scan)
	a.Reduction, a.Exclusive = *r, exclusive
	if exclusive {
		a.Acc, a.Result = nil, r.Acc
	}
	return a
}
