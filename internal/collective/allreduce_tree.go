package collective

// AllreduceTree is Reduce to rank 0, then Bcast: 2(n-1) messages, which is the minimum.
type AllreduceTree struct {
	Reduce
	bcast Bcast
	then
}

func (a *AllreduceTree) Step(k int, x *Exchange) bool {
	a.bcast.Buf = a.Acc
	return a.step(k, x, &a.Reduce, &a.bcast)
}
