package collective

// AllreduceStar is ReduceStar to rank 0, then BcastStar.
type AllreduceStar struct {
	ReduceStar
	bcast BcastStar
	then
}

func (a *AllreduceStar) Step(k int, x *Exchange) bool {
	a.bcast.Buf = a.Acc
	return a.step(k, x, &a.ReduceStar, &a.bcast)
}
