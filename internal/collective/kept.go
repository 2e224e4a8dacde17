package collective

import "slices"

// Kept keeps the Call of an operation that has ended for the next. It belongs to one operation at a
// time. A nil Kept keeps nothing.
type Kept struct {
	call  Call
	parts Parts
}

// begin returns a Call that has no arguments yet.
func (k *Kept) begin() *Call {
	if k == nil {
		return new(Call)
	}
	return &k.call
}

// Forget clears what k keeps of the caller's. It is called when the operation has ended.
func (k *Kept) Forget() { k.call = Call{} }

// Parts returns where the parts of n ranks begin, all 0.
func (k *Kept) Parts(n int) Parts {
	k.parts = slices.Grow(k.parts[:0], n+1)[:n+1]
	clear(k.parts)
	return k.parts
}
