package collective

// Scan sets Acc of rank r to the combination of the values of ranks 0 to r. With Exclusive it
// sets Result to that of ranks 0 to r-1, and leaves Result of rank 0 unchanged. In step k a
// rank sends what it has combined to rank+2^k.
type Scan struct {
	Reduction
	Exclusive bool
	Result    []byte // used with Exclusive only
	have      bool
}

func (a *Scan) Step(k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	if k == 0 {
		a.begin(x, x.Size() > 1)
	} else if from := rank - 1<<(k-1); from >= 0 {
		a.combine(from, x) // before Result changes, which may be Send
		if a.Exclusive {
			if !a.have {
				a.have = true
				copy(a.Result, a.tmp)
			} else {
				a.Op(a.Result, a.tmp, a.Result)
			}
		}
	}
	distance := 1 << k
	if distance >= n {
		if !a.Exclusive {
			a.settle()
		}
		return false
	}
	if rank+distance < n {
		x.Send(rank+distance, a.value)
	}
	if rank-distance >= 0 {
		x.Recv(rank-distance, a.tmp)
	}
	return true
}
