package mpicx

import (
	"slices"
	"sync"
)

// An outbox has the messages that a listener is to send, in order.
type outbox struct {
	mu  sync.Mutex // protects the listener's other fields too
	out []notification
}

type notification struct {
	to      int
	payload []byte
}

// push adds a message. The caller holds mu, and calls Poke when it has released it.
func (o *outbox) push(to int, payload ...byte) { o.out = append(o.out, notification{to, payload}) }

// Next returns the next message.
func (o *outbox) Next() (to int, payload []byte, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.out) == 0 {
		return 0, nil, false
	}
	n := o.out[0]
	o.out = slices.Delete(o.out, 0, 1)
	return n.to, n.payload, true
}
