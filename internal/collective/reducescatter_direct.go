package collective

// ReduceScatterDirect combines the values of all ranks in the order of ranks, and gives each
// rank its part of the result. Each rank sends all others their parts at once: one step.
type ReduceScatterDirect struct {
	Send, Recv []byte // this rank's value, and its part of the result; Recv may be part of Send
	Parts      Parts
	Op         Op

	all []byte // parts from the other ranks, beginning with the next; this rank's own is in Send
}

func (a *ReduceScatterDirect) Step(k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	own := a.Parts.of(a.Send, rank)
	if k == 0 {
		a.all = x.Scratch((n - 1) * len(own))
		for d := n - 1; d > 0; d-- {
			x.Recv(around(rank, d, n), a.all[(d-1)*len(own):][:len(own)])
		}
		for d := 1; d < n; d++ {
			to := around(rank, d, n)
			x.Send(to, a.Parts.of(a.Send, to))
		}
		return true
	}
	if n == 1 {
		place(a.Recv, own)
		return false
	}
	arrived := func(r int) []byte {
		if r == rank {
			return own
		}
		return a.all[(around(r, -rank, n)-1)*len(own):][:len(own)]
	}
	// Combine in the buffer of what rank 0 or 1 has sent, because Recv may be this rank's own
	// part.
	first := arrived(0)
	if rank == 0 {
		first = arrived(1)
	}
	sum := arrived(0)
	for r := 1; r < n; r++ {
		to := first
		if r == n-1 {
			to = a.Recv
		}
		a.Op(to, sum, arrived(r))
		sum = to
	}
	return false
}
