package collective

// ReduceScatterStar is ReduceStar to rank 0, which then sends all others their parts.
type ReduceScatterStar struct {
	Reduction // Acc is this rank's part of the result
	Parts     Parts

	reduce ReduceStar
	then
}

func (a *ReduceScatterStar) Step(k int, x *Exchange) bool {
	if k == 0 {
		a.reduce = ReduceStar{Reduction: Reduction{Send: a.Send, Op: a.Op}}
		if x.Rank() == 0 {
			a.reduce.Acc = x.Scratch(len(a.Send))
		}
	}
	return a.step(k, x, &a.reduce, spread{a.reduce.Acc, a.Acc, a.Parts})
}
