package collective

// ReduceStar is Reduce in which all others send to Root directly, and Root combines the values
// in the order of ranks: n-1 messages, and Root waits only once. It is for short values, and
// for ranks that share cores.
type ReduceStar struct {
	Reduction
	Root int
	all  []byte // values of the other ranks, beginning with Root+1
}

func (a *ReduceStar) Step(k int, x *Exchange) bool {
	n := x.Size()
	if k == 0 {
		a.begin(x, false)
		if x.Rank() != a.Root {
			x.Send(a.Root, a.value)
			return false
		}
		a.all = x.Scratch((n - 1) * len(a.value))
		for d := 1; d < n; d++ {
			x.Recv(around(a.Root, d, n), a.part(d))
		}
		return true
	}
	if a.Root == 0 {
		for r := 1; r < n; r++ {
			a.Op(a.Acc, a.value, a.part(r))
			a.value = a.Acc
		}
		a.settle()
		return false
	}
	sum := a.part(n - a.Root) // rank 0's value; Acc may be this rank's
	for r := 1; r < n; r++ {
		v, to := a.value, sum
		if r != a.Root {
			v = a.part(around(r, -a.Root, n))
		}
		if r == n-1 {
			to = a.Acc
		}
		a.Op(to, sum, v)
	}
	return false
}

// part returns the value of the rank d places after Root.
func (a *ReduceStar) part(d int) []byte { return a.all[(d-1)*len(a.value):][:len(a.value)] }
