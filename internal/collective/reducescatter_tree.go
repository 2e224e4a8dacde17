package collective

// ReduceScatterTree is Reduce to rank 0, which then sends all others their parts.
type ReduceScatterTree struct {
	Reduction // Acc is this rank's part of the result
	Parts     Parts

	reduce Reduce
	spread spread
	then
}

func (a *ReduceScatterTree) Step(k int, x *Exchange) bool {
	if k == 0 {
		a.reduce = Reduce{Reduction: Reduction{Send: a.Send, Op: a.Op}}
		if x.Rank() == 0 {
			a.reduce.Acc = x.Scratch(len(a.Send))
		}
		a.spread = spread{a.reduce.Acc, a.Acc, a.Parts}
	}
	return a.step(k, x, &a.reduce, &a.spread)
}

// spread is the second half: rank 0 sends all others their parts of the whole.
type spread struct {
	whole, own []byte
	parts      Parts
}

func (a *spread) Step(_ int, x *Exchange) bool {
	if x.Rank() > 0 {
		x.Recv(0, a.own)
		return false
	}
	for to := 1; to < x.Size(); to++ {
		x.Send(to, a.parts.of(a.whole, to))
	}
	copy(a.own, a.parts.of(a.whole, 0))
	return false
}
