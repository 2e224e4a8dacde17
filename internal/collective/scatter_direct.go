package collective

// ScatterDirect is Scatter in which Root sends to all others directly.
type ScatterDirect struct {
	Send, Recv []byte
	Root       int
}

func (a *ScatterDirect) Step(_ int, x *Exchange) bool {
	if x.Rank() != a.Root {
		x.Recv(a.Root, a.Recv)
		return false
	}
	n, b := x.Size(), len(a.Recv)
	for d := 1; d < n; d++ {
		to := around(a.Root, d, n)
		x.Send(to, a.Send[to*b:][:b])
	}
	x.Copy(a.Recv, a.Send[a.Root*b:])
	return false
}
