package transport

// Private is the state that a transport keeps in a Request under way; with it, an operation needs
// only one allocation. Only the transport uses it.
type Private struct {
	Kind           Kind
	Where          any // what the request waits in
	Links[Request]     // in that; Next also in a list of some that have ended

	Beginning, Ended bool // see Starter
}

// Links is the place of an E in a queue: see package match.
type Links[E any] struct {
	Next, Prev *E
	Number     uint64
}

// In returns the place of what embeds l.
func (l *Links[E]) In() *Links[E] { return l }

// A Kind is the operation of a request.
type Kind uint8

// The kinds of requests. Idle means that no operation is under way.
const (
	Idle Kind = iota
	Sending
	Receiving
	Probing
	Mprobing
	Joining
)

func (k Kind) String() string {
	return [...]string{"idle", "send", "receive", "probe", "matched probe", "meeting"}[k]
}
