package collective

// ReduceScatterDirect combines the values of all ranks in their order, and leaves each rank
// its part of the result. All send each rank its part at once: one step.
type ReduceScatterDirect struct {
	Send, Recv []byte // the value, and the rank's part of the result, which may be in Send
	Parts      Parts
	Op         Op

	arrived [][]byte // by rank; this rank's own is in Send
}

func (a *ReduceScatterDirect) Step(k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	own := a.Parts.of(a.Send, rank)
	if k == 0 {
		a.arrived = make([][]byte, n)
		a.arrived[rank] = own
		tmp := x.Scratch((n - 1) * len(own))
		for d := 1; d < n; d++ {
			from := around(rank, -d, n)
			a.arrived[from], tmp = tmp[:len(own)], tmp[len(own):]
			x.Recv(from, a.arrived[from])
		}
		for d := 1; d < n; d++ {
			to := around(rank, d, n)
			x.Send(to, a.Parts.of(a.Send, to))
		}
		return true
	}
	if n == 1 {
		copy(a.Recv, own)
	}
	// In what rank 0 or 1 has sent, since Recv may be this rank's own part.
	sum := a.arrived[0]
	for r := 1; r < n; r++ {
		to := a.arrived[0]
		switch {
		case r == n-1:
			to = a.Recv
		case rank == 0:
			to = a.arrived[1]
		}
		a.Op(to, sum, a.arrived[r])
		sum = to
	}
	return false
}
