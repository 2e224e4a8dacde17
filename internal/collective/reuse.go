package collective

import "github.com/mpicx/go-mpicx/internal/transport"

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
func (k *Kept) Forget() {
	a := &k.call
	a.Reduction, a.root, a.parts, a.exclusive, a.meeting, a.share, a.division = Reduction{}, 0, nil, false, transport.Meeting{}, 0, nil
	if s := a.state; s != nil && (s.at > 0 || s.value != nil || s.arrived != nil) { // many algorithms have no state
		*s = state{}
	}
}

// Parts returns where the parts of n ranks begin, all 0.
func (k *Kept) Parts(n int) Parts {
	if cap(k.parts) <= n {
		k.parts = make(Parts, n+1)
		return k.parts
	}
	k.parts = k.parts[:n+1]
	clear(k.parts)
	return k.parts
}
