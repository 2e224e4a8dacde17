package collective

// Kept has the algorithms of operations that have ended, one of each operation, to serve again. It
// belongs to one operation at a time. Nil is one that keeps nothing.
type Kept struct {
	algorithms [operations]Algorithm
	parts      Parts
}

// again returns what k keeps for op if that is an A, else a new one.
func again[A any, P interface {
	*A
	Algorithm
}](k *Kept, op operation) P {
	if k == nil {
		return new(A)
	}
	a, ok := k.algorithms[op].(P)
	if !ok {
		a = new(A)
		k.algorithms[op] = a
	}
	return a
}

// Parts returns where the parts of n ranks begin, all 0.
func (k *Kept) Parts(n int) Parts {
	if k == nil || cap(k.parts) <= n {
		p := make(Parts, n+1)
		if k != nil {
			k.parts = p
		}
		return p
	}
	k.parts = k.parts[:n+1]
	clear(k.parts)
	return k.parts
}
