package collective

// AllreduceParts is a ReduceScatterDirect with parts of equal length, then an AllgatherDirect:
// two steps of n(n-1) messages.
type AllreduceParts struct {
	Reduction

	reduceScatter ReduceScatterDirect
	allgather     AllgatherDirect
	then
}

func (a *AllreduceParts) Step(k int, x *Exchange) bool {
	if k == 0 {
		a.begin(x, false)
		parts := even(len(a.Acc), a.Element, x.Size())
		a.reduceScatter = ReduceScatterDirect{Send: a.value, Recv: parts.of(a.Acc, x.Rank()), Parts: parts, Op: a.Op}
		a.allgather = AllgatherDirect{Buf: a.Acc, Parts: parts}
	}
	return a.step(k, x, &a.reduceScatter, &a.allgather)
}
