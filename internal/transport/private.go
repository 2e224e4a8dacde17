package transport

// Private is what a transport keeps in a Request that it works on, so that an
// operation needs one allocation. Nobody else looks at it.
type Private struct {
	Kind   Kind
	Where  any      // what the request waits in
	Next   *Request // in that, or in a list of some that have ended
	Prev   *Request
	Number uint64 // in a queue: see package match
}

// A Kind says which operation a request is of.
type Kind uint8

// The kinds of requests; Idle is none.
const (
	Idle Kind = iota
	Sending
	Receiving
	Probing
	Mprobing
)

func (k Kind) String() string {
	return [...]string{"idle", "send", "receive", "probe", "matched probe"}[k]
}
