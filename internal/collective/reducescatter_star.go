package collective

// ReduceScatterStar is ReduceStar to rank 0, which then sends all others their parts.
type ReduceScatterStar struct {
	Reduction // Acc is this rank's part of the result
	Parts     Parts

	reduce ReduceStar
	spread spread
	then
}

func (a *ReduceScatterStar) Step(k int, x *Exchange) bool {
	if k == 0 {
		a.reduce = ReduceStar{Reduction: Reduction{Send: a.Send, Op: a.Op}}
		if x.Rank() == 0 {
			a.reduce.Acc = x.Scratch(len(a.Send))
		}
		a.spread = spread{a.reduce.Acc, a.Acc, a.Parts}
	}
	return a.step(k, x, &a.reduce, &a.spread)
}
