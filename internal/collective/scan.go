package collective

// Scan makes Acc of rank r the combination of the values of ranks 0 to r, or, with
// Exclusive, Result that of those to r-1: at rank 0 it is then left alone. In step k a rank
// passes what it has to rank+2^k.
type Scan struct {
	Reduction
	Exclusive bool
	Result    []byte // of Exclusive
	have      bool
}

func (a *Scan) Step(k int, x *Exchange) bool {
	rank, n := x.Rank(), x.Size()
	if k == 0 {
		a.begin(x, x.Size() > 1)
	} else if from := rank - 1<<(k-1); from >= 0 {
		a.combine(from, x) // first: Result may be Send
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
