package collective

// AllgatherDirect gives all ranks the parts of all. Each rank sends its part to all others at
// once: one step.
type AllgatherDirect struct {
	Send  []byte // this rank's part; nil: it is in Buf
	Buf   []byte
	Parts Parts
}

func (a *AllgatherDirect) Step(_ int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	own := ownPart(a.Send, a.Buf, a.Parts, rank)
	for d := 1; d < n; d++ {
		from := around(rank, -d, n)
		x.Recv(from, a.Parts.of(a.Buf, from))
	}
	for d := 1; d < n; d++ {
		x.Send(around(rank, d, n), own)
	}
	return false
}
