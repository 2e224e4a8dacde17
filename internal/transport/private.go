package transport

// Private is the state that a transport keeps in a Request under way; with it, an operation needs
// only one allocation. Only the transport uses it.
type Private struct {
	Kind   Kind
	Where  any      // what the request waits in
	Next   *Request // in that, or in a list of some that have ended
	Prev   *Request
	Number uint64 // in a queue: see package match

	Beginning, Ended bool // see Starter
}

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
