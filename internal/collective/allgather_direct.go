package collective

// AllgatherDirect brings the parts of all ranks to every rank. All send theirs to all others
// at once: one step.
type AllgatherDirect struct {
	Send  []byte // this rank's part; nil: Buf has it
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
