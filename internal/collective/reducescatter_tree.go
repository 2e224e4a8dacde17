package collective

// ReduceScatterTree is Reduce to rank 0, which then sends all others their parts.
type ReduceScatterTree struct {
	Reduction // Acc is this rank's part of the result
	Parts     Parts

	reduce Reduce
	then
}

func (a *ReduceScatterTree) Step(k int, x *Exchange) bool {
	if k == 0 {
		a.reduce = Reduce{Reduction: Reduction{Send: a.Send, Op: a.Op}}
		if x.Rank() == 0 {
			a.reduce.Acc = x.Scratch(len(a.Send))
		}
	}
	return a.step(k, x, &a.reduce, (*spread)(a))
}

// spread is the second half.
type spread ReduceScatterTree

func (a *spread) Step(_ int, x *Exchange) bool {
	if x.Rank() > 0 {
		x.Recv(0, a.Acc)
		return false
	}
	for to := 1; to < x.Size(); to++ {
		x.Send(to, a.Parts.of(a.reduce.Acc, to))
	}
	copy(a.Acc, a.Parts.of(a.reduce.Acc, 0))
	return false
}
