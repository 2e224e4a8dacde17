package collective

// AllgatherStar is GatherDirect to rank 0, then BcastStar. With parts of no bytes it is a
// barrier.
type AllgatherStar struct {
	GatherDirect
	bcast BcastStar
	then
}

func (a *AllgatherStar) Step(k int, x *Exchange) bool {
	a.bcast.Buf = a.Recv
	return a.step(k, x, &a.GatherDirect, &a.bcast)
}
