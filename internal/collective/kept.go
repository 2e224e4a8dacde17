package collective

// Kept keeps the algorithms of operations that have ended, one of each kind, for reuse. It belongs
// to one operation at a time. A nil Kept keeps nothing.
type Kept struct {
	algorithms [operations]keeping
	used       keeping // the algorithm of the present operation, or nil
	parts      Parts
}

// Forget clears what k keeps of the caller's. It is called when the operation has ended.
func (k *Kept) Forget() {
	if k.used != nil {
		k.used.forget()
		k.used = nil
	}
}

type keeping interface{ forget() }

// kept is an algorithm that may be used again.
type kept[A any] struct{ algorithm A }

func (k *kept[A]) forget() { k.algorithm = *new(A) }

// again returns the algorithm that k keeps for op if it is an A, or a new one. It is a zero A.
func again[A any, P interface {
	*A
	Algorithm
}](k *Kept, op operation) P {
	if k == nil {
		return new(A)
	}
	a, ok := k.algorithms[op].(*kept[A])
	if !ok {
		a = new(kept[A])
		k.algorithms[op] = a
	}
	k.used = a
	return &a.algorithm
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
