package collective

import "github.com/mpicx/go-mpicx/internal/binomial"

// Linear exchanges parts directly: rank r's Send[i] goes to rank i, and rank i's part comes
// into r's Recv[i]. A nil slice stands for no part. A nil Send or Recv has no parts at all.
// Linear is for long parts and for parts of different lengths, because no rank passes on
// another's part.
type Linear struct {
	Send, Recv [][]byte
}

func (a *Linear) Step(_ int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	own := a.Send != nil && a.Recv != nil && len(a.Send[rank]) == len(a.Recv[rank])
	if own {
		place(a.Recv[rank], a.Send[rank])
	}
	for d := range n { // each rank starts with another peer
		from := binomial.Around(rank-d, n)
		if a.Recv != nil && a.Recv[from] != nil && !(own && d == 0) {
			x.Recv(from, a.Recv[from])
		}
	}
	for d := range n {
		to := binomial.Around(rank+d, n)
		if a.Send != nil && a.Send[to] != nil && !(own && d == 0) {
			x.Send(to, a.Send[to])
		}
	}
	return false
}

// alltoallDirect is Linear for parts of equal length.
func alltoallDirect(a *Call, _ int, x *Exchange) bool {
	each := len(a.Send) / x.Size()
	recv := func(r int) []byte { return a.Recv[r*each:][:each] }
	send := func(r int) []byte { return a.Send[r*each:][:each] }
	place(recv(x.Rank()), send(x.Rank()))
	direct(x, recv, send)
	return false
}

// direct exchanges one message with each other rank: what recv and send return for it.
func direct(x *Exchange, recv, send func(rank int) []byte) {
	rank, n := x.Rank(), x.Size()
	for d := 1; d < n; d++ {
		from := binomial.Around(rank-d, n)
		x.Recv(from, recv(from))
	}
	for d := 1; d < n; d++ {
		to := binomial.Around(rank+d, n)
		x.Send(to, send(to))
	}
}
