package collective

// BcastStar is Bcast with messages from Root to all others.
type BcastStar struct {
	Buf  []byte
	Root int
}

func (a *BcastStar) Step(_ int, x *Exchange) bool {
	if x.Rank() != a.Root {
		x.Recv(a.Root, a.Buf)
		return false
	}
	for d := 1; d < x.Size(); d++ {
		x.Send(around(a.Root, d, x.Size()), a.Buf)
	}
	return false
}
