package collective

// AllgatherDirect gives all ranks the parts of all. Each rank sends its part to all others at
// once: one step. It sends Send, not the copy in Buf: processes read long messages in the sender's
// memory, and what others have read takes long to be written again.
type AllgatherDirect struct {
	Send  []byte // this rank's part; nil: it is in Buf
	Buf   []byte
	Parts Parts
}

func (a *AllgatherDirect) Step(_ int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	own := a.Parts.of(a.Buf, rank)
	if a.Send != nil {
		x.Copy(own, a.Send)
		own = a.Send
	}
	for d := 1; d < n; d++ {
		from := around(rank, -d, n)
		x.Recv(from, a.Parts.of(a.Buf, from))
	}
	for d := 1; d < n; d++ {
		x.Send(around(rank, d, n), own)
	}
	return false
}
