package collective

// AlltoallBruck is Bruck's Alltoall for short parts of equal length: log n steps of n messages
// each. In step k a rank sends to rank+2^k all parts whose distance to their destination has
// bit k set.
type AlltoallBruck struct {
	Send, Recv []byte

	all             []byte // the parts, by the distance that they travel in all steps
	leaves, arrives []byte
}

func (a *AlltoallBruck) Step(k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	b := len(a.Send) / n
	of := func(buf []byte, i int) []byte { return buf[i*b : (i+1)*b] }
	if k == 0 {
		a.all, a.leaves, a.arrives = x.Scratch(n*b), x.Scratch((n+1)/2*b), x.Scratch((n+1)/2*b)
		copy(a.all, a.Send[rank*b:])
		copy(a.all[(n-rank)*b:], a.Send[:rank*b])
	} else {
		a.bundle(k-1, n, b, func(packed, part []byte) { copy(part, packed) }, a.arrives)
	}
	if 1<<k < n {
		size := a.bundle(k, n, b, func(packed, part []byte) { copy(packed, part) }, a.leaves)
		x.Send(around(rank, 1<<k, n), a.leaves[:size])
		x.Recv(around(rank, -1<<k, n), a.arrives[:size])
		return true
	}
	for d := range n { // the part that has travelled d places
		copy(of(a.Recv, around(rank, -d, n)), of(a.all, d))
	}
	return false
}

// bundle calls do for each of the n parts, of b bytes, that travels in step k, with its place
// in packed. It returns their total length.
func (a *AlltoallBruck) bundle(k, n, b int, do func(packed, part []byte), packed []byte) (size int) {
	for d := 1 << k; d < n; d++ {
		if d>>k&1 == 1 {
			do(packed[size:][:b], a.all[d*b:][:b])
			size += b
		}
	}
	return size
}
