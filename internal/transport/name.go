package transport

// A Name distinguishes the communicators made from one parent. All members of a new communicator
// know its name without messages, because they count their calls. The name of a duplicate has an
// Epoch and a Seq. There are functions for other names.
type Name struct {
	Epoch Epoch  // of the parent
	Seq   uint64 // of the collective call in that epoch
	// Color distinguishes communicators with the same Seq: it is positive for the parts of a split,
	// 0 for a duplicate, and negative for the names below.
	Color int
	// Generation is the new communicator's generation, which Advance gets for its errors: one more
	// than its parent's, or 0 if it never has errors of its own.
	Generation int
	// Without is a digest of the members that are left out because they are dead, or of the members
	// that are not: a rank that has died may have decided on other members than the survivors.
	Without uint64
}

// ErrorChannelName is the name of the duplicate that carries the messages of an error channel.
func ErrorChannelName() Name { return Name{Color: -1} }

// SplitName is the name of the part of a split whose members chose a color, from 0.
func SplitName(e Epoch, seq uint64, color int) Name {
	return Name{Epoch: e, Seq: seq, Color: color + 1}
}

// ShrinkName is the name of the communicator that the seq-th agreement makes of the living members.
// seq counts agreements, not collective calls.
func ShrinkName(e Epoch, seq, without uint64) Name {
	return Name{Epoch: e, Seq: seq, Color: -2, Without: without}
}

// ReplaceName is the name of the communicator that Replace makes of the living members, and of
// rescues in the places of the dead. seq is its number, and with a digest of its members. Without
// rescues, seq is the number of the agreement that makes it.
func ReplaceName(e Epoch, seq, with uint64) Name {
	return Name{Epoch: e, Seq: seq, Color: -3, Without: with}
}

// FirstName is the name of a program's world in a job that has spares.
func FirstName() Name { return Name{Color: -4} }

// UnionName is the name of the union of two groups, in epoch e of the communicator of all ranks.
// The id is a digest of both calls.
func UnionName(e Epoch, id uint64) Name { return Name{Epoch: e, Seq: id, Color: -5} }

// AssentName is the name of the communicator on which the members of a union agree to make it.
func AssentName(id uint64) Name { return Name{Seq: id, Color: -6} }

// RegistryName is the name of the duplicate of the communicator of all ranks on which groups tell
// each other that they can't make a union.
func RegistryName() Name { return Name{Color: -7} }

// RescueName is the name of the duplicate of the pool that carries the messages of package replace.
func RescueName() Name { return Name{Color: -8} }

// Digest identifies the communicator by the digest of its parent and its name, the same at all
// members.
func (n Name) Digest(parent uint64) uint64 {
	id := parent
	for _, part := range [...]uint64{uint64(n.Epoch), n.Seq, uint64(n.Color), n.Without} {
		id = scramble(id + scramble(part))
	}
	return id
}

// scramble is a permutation in which each bit of x affects all bits (Steele, Lea and Flood,
// Fast Splittable Pseudorandom Number Generators, 2014).
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Check returns a *GenerationError if no communicator can have the name's Generation.
func (n Name) Check() error {
	if n.Generation < 0 || n.Generation >= Generations {
		return &GenerationError{n.Generation}
	}
	return nil
}
