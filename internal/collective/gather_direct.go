package collective

// GatherDirect is Gather in which all others send to Root directly.
type GatherDirect struct {
	Send, Recv []byte
	Root       int
}

func (a *GatherDirect) Step(_ int, x *Exchange) bool {
	if x.Rank() != a.Root {
		x.Send(a.Root, a.Send)
		return false
	}
	n, b := x.Size(), len(a.Send)
	for d := 1; d < n; d++ {
		from := around(a.Root, d, n)
		x.Recv(from, a.Recv[from*b:][:b])
	}
	x.Copy(a.Recv[a.Root*b:], a.Send)
	return false
}
