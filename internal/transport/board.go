package transport

// A Board is a Comm whose ranks share memory. A collective call on it has no steps: each rank shows
// the others its part, and takes what it needs of theirs.
type Board interface {
	Comm
	// Meet makes the collective call that r.Signature describes, in r.Epoch, sets r.Tag, and has
	// the call carried out as r.Meeting says. If it has ended when Meet returns, Meet says so, and
	// r.Done is not called.
	Meet(r *Request) (ended bool)
}

// A Meeting is one rank's part in a call on a Board.
type Meeting struct {
	Part
	Flow Flow
	// Soon says that the program is about to wait, so it is worthwhile to look for the parts for
	// about as long as a message takes.
	Soon    bool
	Root    int // of calls that have one
	Carrier Carrier
	// Where each rank carries out its own part, Bytes is the length of what it needs of each, which
	// is the same at all ranks that show or need anything, and Missing are the ranks, as bits,
	// whose parts have not come.
	Bytes   int
	Missing uint64
}

// Gives says whether a rank needs the part of another one.
func (m *Meeting) Gives(from, to int) bool {
	switch m.Flow {
	case ToRoot:
		return to == m.Root
	case FromRoot:
		return from == m.Root
	case Onward:
		return from <= to
	}
	return true
}

// A Part has the buffers of a rank. If it does not wait for the others, Send is a copy.
type Part struct{ Send, Recv []byte }

// A Flow says which ranks need which.
type Flow uint8

// The flows.
const (
	Together Flow = iota // each needs all
	ToRoot               // the root needs all
	FromRoot             // each needs the root
	Onward               // each needs those before it
)

// A Carrier carries out a call. None of its methods blocks. Where ranks see each other's buffers,
// Carry is used, and otherwise the other methods: when the request has ended, the rank has taken
// all that it needs.
type Carrier interface {
	// Carry sets the results of all ranks from the parts of all or, if there is a root, the result
	// of rank; if each rank needs the root, the parts of others are empty. No part changes
	// meanwhile. Ranks whose words fit have parts of the same length.
	Carry(parts []Part, rank int)
	// For returns the bytes that another rank needs of this one.
	For(rank int) []byte
	// Take takes the bytes that this rank needs of another one, unless they are too many or too
	// few.
	Take(from int, bytes []byte) error
}
