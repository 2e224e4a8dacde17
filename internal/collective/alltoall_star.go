package collective

// AlltoallStar is Alltoall for short parts of equal length: rank 0 gathers all, and then
// scatters them: 2(n-1) messages.
type AlltoallStar struct {
	Send, Recv []byte

	gather  GatherDirect
	scatter ScatterDirect
	then
}

func (a *AlltoallStar) Step(k int, x *Exchange) bool {
	if k == 0 {
		a.gather.Send, a.scatter.Recv = a.Send, a.Recv
		if x.Rank() == 0 {
			a.gather.Recv = x.Scratch(x.Size() * len(a.Send))
		}
	} else if x.Rank() == 0 && k == a.steps {
		a.scatter.Send = x.Scratch(len(a.gather.Recv))
		n, b := x.Size(), len(a.Send)/x.Size()
		for from := range n {
			for to := range n {
				copy(a.scatter.Send[(to*n+from)*b:][:b], a.gather.Recv[(from*n+to)*b:])
			}
		}
	}
	return a.step(k, x, &a.gather, &a.scatter)
}
