package collective

import "github.com/mpicx/go-mpicx/internal/transport"

// A Kind is what lies between the ranks of a communicator.
type Kind int

// The kinds, by which the table is divided.
const (
	Shared  Kind = iota // they are goroutines, which share cores
	Machine             // they are processes of one machine
	Hosts               // they are processes of several
	kinds
)

// A Chooser chooses the algorithms of a communicator's operations, the same at all ranks.
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

// Forced are algorithms by operation that stand for those of the table, where they serve.
// It is for tests and measurements.
var Forced map[string]string

// pick returns the name of the algorithm for an operation on so many bytes.
func (c Chooser) pick(op operation, bytes int) string {
	if name := Forced[Operations[op].Name]; name != "" {
		return name
	}
	for _, r := range table[op][c.kind] {
		if (r.ranks == 0 || c.ranks <= r.ranks) && (r.bytes == 0 || bytes <= r.bytes) {
			return r.use
		}
	}
	panic("collective: no rule for " + Operations[op].Name)
}

// Barrier returns the algorithm for a barrier.
func (c Chooser) Barrier() Algorithm {
	if c.pick(barrier, 0) == "tree" {
		return Barrier{}
	}
	return &AllreduceDoubling{Reduction: Reduction{Op: func(_, _, _ []byte) {}}}
}

// Bcast returns the algorithm for a broadcast.
func (c Chooser) Bcast(buf []byte, root int) Algorithm {
	switch c.pick(bcast, len(buf)) {
	case "scatter":
		return &BcastScatter{Buf: buf, Root: root}
	case "chain":
		return &BcastChain{Buf: buf, Root: root, Segment: chainSegment}
	default:
		return &Bcast{Buf: buf, Root: root}
	}
}

// Reduce returns the algorithm for a reduction to root.
func (c Chooser) Reduce(r Reduction, root int) Algorithm {
	if c.pick(reduce, r.len()) == "chain" && (root == 0 || !r.Ordered) {
		return &ReduceChain{Reduction: r, Root: root, Segment: r.segment()}
	}
	return &Reduce{Reduction: r, Root: root}
}

// Allreduce returns the algorithm for a reduction to all. Reuse, if not nil, may become it.
func (c Chooser) Allreduce(r Reduction, reuse *AllreduceDoubling) Algorithm {
	switch c.pick(allreduce, r.len()) {
	case "tree":
		return &AllreduceTree{Reduce: Reduce{Reduction: r}}
	case "rabenseifner":
		return &Rabenseifner{Reduction: r}
	case "parts":
		return &AllreduceParts{Reduction: r}
	case "star":
		return &AllreduceStar{ReduceStar: ReduceStar{Reduction: r}}
	}
	if reuse == nil {
		reuse = new(AllreduceDoubling)
	}
	*reuse = AllreduceDoubling{Reduction: r}
	return reuse
}

// ReduceScatter returns the algorithm for a reduction whose result is spread by parts. Acc is
// the rank's own part.
func (c Chooser) ReduceScatter(r Reduction, parts Parts) Algorithm {
	switch c.pick(reduceScatter, len(r.Send)) {
	case "tree":
		return &ReduceScatterTree{Reduction: r, Parts: parts}
	case "star":
		return &ReduceScatterStar{Reduction: r, Parts: parts}
	}
	return &ReduceScatterDirect{Send: r.Send, Recv: r.Acc, Parts: parts, Op: r.Op}
}

// Allgather returns the algorithm for gathering parts of one length at all ranks.
func (c Chooser) Allgather(send, recv []byte) Algorithm {
	switch c.pick(allgather, len(send)) {
	case "tree":
		return &Allgather{Gather: Gather{Send: send, Recv: recv}}
	case "star":
		return &AllgatherStar{GatherDirect: GatherDirect{Send: send, Recv: recv}}
	}
	parts := make(Parts, c.ranks+1)
	for i := range parts {
		parts[i] = i * len(send)
	}
	return &AllgatherDirect{Send: send, Buf: recv, Parts: parts}
}

// Allgatherv is Allgather of parts of other lengths.
func (c Chooser) Allgatherv(send, recv []byte, parts Parts) Algorithm {
	if c.pick(allgatherv, len(recv)/c.ranks) == "tree" {
		return &Allgatherv{Send: send, Recv: recv, At: parts}
	}
	return &AllgatherDirect{Send: send, Buf: recv, Parts: parts}
}

// Gather returns the algorithm for gathering parts of one length at root.
func (c Chooser) Gather(send, recv []byte, root int) Algorithm {
	if c.pick(gather, len(send)) == "tree" {
		return &Gather{Send: send, Recv: recv, Root: root}
	}
	return &GatherDirect{Send: send, Recv: recv, Root: root}
}

// Scatter returns the algorithm for handing out parts of one length from root.
func (c Chooser) Scatter(send, recv []byte, root int) Algorithm {
	if c.pick(scatter, len(recv)) == "tree" {
		return &Scatter{Send: send, Recv: recv, Root: root}
	}
	return &ScatterDirect{Send: send, Recv: recv, Root: root}
}

// Alltoall returns the algorithm for the exchange of parts of one length.
func (c Chooser) Alltoall(send, recv []byte) Algorithm {
	length := len(send) / c.ranks
	switch c.pick(alltoall, length) {
	case "bruck":
		return &AlltoallBruck{Send: send, Recv: recv}
	case "star":
		return &AlltoallStar{Send: send, Recv: recv}
	}
	split := func(b []byte) [][]byte {
		parts := make([][]byte, c.ranks)
		for r := range parts {
			parts[r] = b[r*length:][:length:length]
		}
		return parts
	}
	return &Linear{Send: split(send), Recv: split(recv)}
}

// Scan returns the algorithm for what ranks have together with those before; exclusive: those before
// alone, whose result is Acc, too.
func (c Chooser) Scan(r Reduction, exclusive bool) Algorithm {
	var result []byte
	if exclusive {
		r.Acc, result = nil, r.Acc
	}
	if c.pick(scan, r.len()) == "chain" {
		return &ScanChain{Reduction: r, Exclusive: exclusive, Result: result, Segment: r.segment()}
	}
	return &Scan{Reduction: r, Exclusive: exclusive, Result: result}
}
