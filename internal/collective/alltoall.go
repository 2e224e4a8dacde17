package collective

// Linear exchanges parts directly: rank r's Send[i] goes to rank i, and rank i's part comes
// into r's Recv[i]. A nil slice stands for no part. A nil Send or Recv has no parts at all.
// Linear is for long parts and for parts of different lengths, because no rank passes on
// another's part.
type Linear struct {
	Send, Recv [][]byte
}

func (a *Linear) Step(k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	own := a.Send != nil && a.Recv != nil && len(a.Send[rank]) == len(a.Recv[rank])
	if own {
		x.Copy(a.Recv[rank], a.Send[rank])
	}
	for d := range n { // each rank starts with another peer
		if d == 0 && own {
			continue
		}
		if from := around(rank, -d, n); a.Recv != nil && a.Recv[from] != nil {
			x.Recv(from, a.Recv[from])
		}
	}
	for d := range n {
		if d == 0 && own {
			continue
		}
		if to := around(rank, d, n); a.Send != nil && a.Send[to] != nil {
			x.Send(to, a.Send[to])
		}
	}
	return false
}

// alltoallDirect is Linear for parts of equal length.
func alltoallDirect(a *Call, _ int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	b := len(a.Send) / n
	x.Copy(a.Recv[rank*b:][:b], a.Send[rank*b:])
	for d := 1; d < n; d++ {
		from := around(rank, -d, n)
		x.Recv(from, a.Recv[from*b:][:b])
	}
	for d := 1; d < n; d++ {
		to := around(rank, d, n)
		x.Send(to, a.Send[to*b:][:b])
	}
	return false
}

// alltoallBruck is Bruck's Alltoall for short parts of equal length: log n steps of n messages
// each. In step k a rank sends to rank+2^k all parts whose distance to their destination has
// bit k set.
func alltoallBruck(a *Call, k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	b, half := len(a.Send)/n, (n+1)/2
	of := func(buf []byte, i int) []byte { return buf[i*b : (i+1)*b] }
	if k == 0 { // value has the parts, by the distance that they travel in all steps
		a.value, a.arrived = x.Scratch(n*b), x.Scratch(2*half*b)
		copy(a.value, a.Send[rank*b:])
		copy(a.value[(n-rank)*b:], a.Send[:rank*b])
	}
	leaves, arrives := a.arrived[:half*b], a.arrived[half*b:]
	if k > 0 {
		bundle(a.value, k-1, n, b, func(packed, part []byte) { copy(part, packed) }, arrives)
	}
	if 1<<k < n {
		size := bundle(a.value, k, n, b, func(packed, part []byte) { copy(packed, part) }, leaves)
		x.Send(around(rank, 1<<k, n), leaves[:size])
		x.Recv(around(rank, -1<<k, n), arrives[:size])
		return true
	}
	for d := range n { // the part that has travelled d places
		copy(of(a.Recv, around(rank, -d, n)), of(a.value, d))
	}
	return false
}

// bundle calls do for each of the n parts, of b bytes, that travels in step k, with its place
// in packed. It returns their total length.
func bundle(parts []byte, k, n, b int, do func(packed, part []byte), packed []byte) (size int) {
	for d := 1 << k; d < n; d++ {
		if d>>k&1 == 1 {
			do(packed[size:][:b], parts[d*b:][:b])
			size += b
		}
	}
	return size
}
