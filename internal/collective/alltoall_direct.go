package collective

// AlltoallDirect is Linear for parts of equal length.
type AlltoallDirect struct {
	Send, Recv []byte
}

func (a *AlltoallDirect) Step(_ int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	b := len(a.Send) / n
	x.Copy(a.Recv[rank*b:][:b], a.Send[rank*b:])
	for d := 1; d < n; d++ { // each rank starts with another peer
		from := around(rank, -d, n)
		x.Recv(from, a.Recv[from*b:][:b])
	}
	for d := 1; d < n; d++ {
		to := around(rank, d, n)
		x.Send(to, a.Send[to*b:][:b])
	}
	return false
}
