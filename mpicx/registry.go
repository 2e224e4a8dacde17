package mpicx

import (
	"sync"

	"github.com/mpicx/go-mpicx/internal/couple"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A registry is the listener of a rank's couple.Registry, for calls of CreateIntercomm. Its
// messages go among all ranks of the job.
type registry struct {
	t transport.Messenger

	mu    sync.Mutex // protects the following fields; not held while a function of failed runs
	calls *couple.Registry
	// failed are this rank's inquiries: what to call, by the id of the other group's call, if that
	// has failed.
	failed map[uint64]func()
}

var _ transport.Listener = (*registry)(nil)

// feed gives the rank's couple.Registry an input, and has its messages sent.
func (g *registry) feed(input func(*couple.Registry)) {
	g.mu.Lock()
	input(g.calls)
	g.mu.Unlock()
	g.t.Poke()
}

// ask begins an inquiry about a call of another group by AskOne or AskAll. failed is called once if
// the call has failed.
func (g *registry) ask(id uint64, members []int, by func(*couple.Registry, uint64, []int), failed func()) {
	g.feed(func(m *couple.Registry) {
		g.failed[id] = failed
		by(m, id, members)
	})
}

// end ends a call of this rank, and the inquiry about the other group's call.
func (g *registry) end(id, other uint64, failed bool) {
	g.feed(func(m *couple.Registry) {
		delete(g.failed, other)
		m.End(id, other, failed)
	})
}

// Take receives a message.
func (g *registry) Take(from int, payload []byte) {
	var failed func()
	g.feed(func(m *couple.Registry) {
		if id, answered := m.Receive(from, payload); answered {
			failed = g.failed[id]
			delete(g.failed, id)
		}
	})
	if failed != nil {
		failed()
	}
}

// Next returns the next message.
func (g *registry) Next() (to int, payload []byte, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, ok := g.calls.Next()
	return m.To, m.Payload, ok
}

// Died notes that a rank has died.
func (g *registry) Died(rank int) { g.feed(func(m *couple.Registry) { m.Died(rank) }) }

// Purpose names the purpose of the messages.
func (g *registry) Purpose([]byte) string { return "createintercomm" }
