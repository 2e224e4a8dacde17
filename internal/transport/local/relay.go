package local

import (
	"sync"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// relay delivers the deferred messages of a group, in the order in which they
// were sent: the first goroutine to come does it for those that come meanwhile.
type relay struct {
	mu      sync.Mutex
	queue   []relayed
	running bool
}

type relayed struct {
	from *Comm
	r    *transport.Request
	then func() // instead of a message
}

func (y *relay) do(m relayed) {
	y.mu.Lock()
	y.queue = append(y.queue, m)
	if y.running {
		y.mu.Unlock()
		return
	}
	y.running = true
	for len(y.queue) > 0 {
		todo := y.queue
		y.queue = nil
		y.mu.Unlock()
		for _, m := range todo {
			if m.then != nil {
				m.then()
			} else {
				m.from.deliver(m.r)
			}
		}
		y.mu.Lock()
		if y.queue == nil {
			clear(todo)
			y.queue = todo[:0]
		}
	}
	y.queue, y.running = nil, false
	y.mu.Unlock()
}
