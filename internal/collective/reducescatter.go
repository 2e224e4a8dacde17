package collective

// reduceScatterTree is reduceTree to rank 0, then scatterDirect.
func reduceScatterTree(a *Call, k int, x *Exchange) bool { return a.reduceAtFirst(k, x, reduceTree) }

// reduceScatterStar is reduceStar to rank 0, then scatterDirect.
func reduceScatterStar(a *Call, k int, x *Exchange) bool { return a.reduceAtFirst(k, x, reduceStar) }

func (a *Call) reduceAtFirst(k int, x *Exchange, reduce step) bool {
	switch k {
	case 0:
		a.Recv, a.result = nil, a.Recv
		if x.Rank() == 0 {
			a.Recv = x.Scratch(len(a.Send))
		}
	case a.begun:
		a.Send, a.Recv = a.Recv, a.result
	}
	return a.inSequence(k, x, reduce, scatterDirect)
}

// reduceScatterDirect combines the values of all ranks in the order of ranks, and gives each rank
// its part of the result. Each rank sends all others their parts at once: one step. Recv may be
// part of Send.
func reduceScatterDirect(a *Call, k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	own := a.parts.part(a.Send, rank)
	if k == 0 { // arrived begins with the next rank's part; this rank's own is in Send
		a.arrived = x.Scratch((n - 1) * len(own))
		for d := n - 1; d > 0; d-- {
			x.Recv(around(rank, d, n), a.arrived[(d-1)*len(own):][:len(own)])
		}
		for d := 1; d < n; d++ {
			to := around(rank, d, n)
			x.Send(to, a.parts.part(a.Send, to))
		}
		return true
	}
	if n == 1 {
		place(a.Recv, own)
		return false
	}
	of := func(r int) []byte {
		if r == rank {
			return own
		}
		return a.arrived[(around(r, -rank, n)-1)*len(own):][:len(own)]
	}
	// Combine in the buffer of what rank 0 or 1 has sent, because Recv may be this rank's own
	// part.
	first := of(0)
	if rank == 0 {
		first = of(1)
	}
	sum := of(0)
	for r := 1; r < n; r++ {
		to := first
		if r == n-1 {
			to = a.Recv
		}
		a.Op(to, sum, of(r))
		sum = to
	}
	return false
}
