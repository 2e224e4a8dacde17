package transport

// A Name tells the communicators made from one parent apart. All members of a
// new communicator agree on it without messages: they count. That of a duplicate has an
// Epoch and a Seq; there are functions for the others.
type Name struct {
	Epoch Epoch  // of the parent
	Seq   uint64 // of the collective call in that epoch
	// Color tells apart what calls with one Seq make: it is positive for the parts of a
	// split, 0 for a duplicate, and negative for those below.
	Color int
	// Generation is that of the new communicator, which Advance is told for its errors:
	// one more than its parent's, or 0 if it never has any of its own.
	Generation int
	// Without is a digest of the members left out because they are dead, or of those that
	// are in it: a rank that died may have decided on others than its survivors did.
	Without uint64
}

// ErrorChannelName is the name of the one duplicate that carries the messages of an error
// channel.
func ErrorChannelName() Name { return Name{Color: -1} }

// SplitName is the name of the part of a split whose members chose a color, from 0.
func SplitName(e Epoch, seq uint64, color int) Name {
	return Name{Epoch: e, Seq: seq, Color: color + 1}
}

// ShrinkName is the name of what the seq-th agreement, not collective call, makes of the
// members that are not dead.
func ShrinkName(e Epoch, seq, without uint64) Name {
	return Name{Epoch: e, Seq: seq, Color: -2, Without: without}
}

// ReplaceName is the name of what the seq-th agreement makes of the living members and of
// spares in the places of the dead. With is a digest of its members.
func ReplaceName(e Epoch, seq, with uint64) Name {
	return Name{Epoch: e, Seq: seq, Color: -3, Without: with}
}

// FirstName is the name of what the world is to a program, beside which there are spares.
func FirstName() Name { return Name{Color: -4} }

// UnionName is the name of what two groups make together, in epoch e of the communicator of all
// ranks. The id is a digest of both calls.
func UnionName(e Epoch, id uint64) Name { return Name{Epoch: e, Seq: id, Color: -5} }

// AssentName is the name of the duplicate of a union on which its members agree to make it.
func AssentName(id uint64) Name { return Name{Seq: id, Color: -6} }

// RegistryName is the name of the one duplicate of the communicator of all ranks on which groups
// tell each other that they can't make a union.
func RegistryName() Name { return Name{Color: -7} }

// Check returns a *GenerationError if no communicator can have the name's Generation.
func (n Name) Check() error {
	if n.Generation < 0 || n.Generation >= Generations {
		return &GenerationError{n.Generation}
	}
	return nil
}
