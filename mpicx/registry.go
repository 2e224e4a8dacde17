package mpicx

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A registry is one rank's part in the record of failed calls of CreateIntercomm. By it the members
// of one group learn that the other group has failed, even if that group does not know them. It uses
// messages among all ranks of the job. A digest, the id, identifies the call of one group. A rank
// that waits for the members of the other group asks one of them about their call. It gets an answer
// only if the call has failed.
type registry struct {
	t transport.Messenger

	outbox
	open      map[uint64][]int    // this rank's calls that may still fail, and the ranks that have asked
	failed    map[uint64]bool     // this rank's calls that have failed
	inquiries map[uint64]*inquiry // this rank's inquiries, by the call that each is about
	dead      map[int]bool
}

// An inquiry is a rank's question about the call of another group.
type inquiry struct {
	members []int
	at      int    // the member that is asked
	failed  func() // called if it has failed
}

// First bytes of messages: the sender asks about a call, or says that it has failed.
const (
	asking byte = 1 + iota
	failing
)

func newRegistry() *registry {
	return &registry{open: make(map[uint64][]int), failed: make(map[uint64]bool), inquiries: make(map[uint64]*inquiry), dead: make(map[int]bool)}
}

// begin notes a call of this rank.
func (g *registry) begin(id uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[id] = nil
}

// end forgets a call of this rank, and the inquiry about the other group's call. If the call has
// failed, ranks that have asked, or ask later, are told.
func (g *registry) end(id, other uint64, failed bool) {
	g.mu.Lock()
	if failed {
		g.failed[id] = true
		for _, r := range g.open[id] {
			g.tell(r, failing, id)
		}
	}
	delete(g.open, id)
	delete(g.inquiries, other)
	g.mu.Unlock()
	g.t.Poke()
}

// ask asks a member of another group about their call, at first members[at], and the next living
// member when that one dies. One is enough: a call that has failed at one has failed at all that
// live.
func (g *registry) ask(id uint64, members []int, at int, failed func()) {
	g.mu.Lock()
	i := &inquiry{members, at % len(members), failed}
	g.inquiries[id] = i
	g.pursue(id, i)
	g.mu.Unlock()
	g.t.Poke()
}

// askAll asks all members, for the black channel, where the call may fail at some alone.
func (g *registry) askAll(id uint64, members []int, failed func()) {
	g.mu.Lock()
	g.inquiries[id] = &inquiry{members, 0, failed}
	for _, r := range members {
		g.tell(r, asking, id)
	}
	g.mu.Unlock()
	g.t.Poke()
}

// pursue asks the first living member.
func (g *registry) pursue(id uint64, i *inquiry) {
	for range i.members {
		if r := i.members[i.at]; !g.dead[r] {
			g.tell(r, asking, id)
			return
		}
		i.at = (i.at + 1) % len(i.members)
	}
}

func (g *registry) tell(to int, what byte, id uint64) {
	g.push(to, binary.LittleEndian.AppendUint64([]byte{what}, id)...)
}

// Take takes a message.
func (g *registry) Take(from int, payload []byte) {
	if len(payload) != 9 {
		return
	}
	id := binary.LittleEndian.Uint64(payload[1:])
	var failed func()
	g.mu.Lock()
	switch asked, open := g.open[id]; {
	case payload[0] == failing && g.inquiries[id] != nil:
		failed = g.inquiries[id].failed
		delete(g.inquiries, id)
	case payload[0] == asking && g.failed[id]:
		g.tell(from, failing, id)
	case payload[0] == asking && open:
		g.open[id] = append(asked, from)
	}
	g.mu.Unlock()
	if failed != nil {
		failed()
	}
	g.t.Poke()
}

// Died asks another member in the place of a dead one.
func (g *registry) Died(rank int) {
	g.mu.Lock()
	if !g.dead[rank] {
		g.dead[rank] = true
		for id, i := range g.inquiries {
			if i.members[i.at] == rank {
				g.pursue(id, i)
			}
		}
	}
	g.mu.Unlock()
	g.t.Poke()
}

// Purpose names the purpose of the messages.
func (g *registry) Purpose([]byte) string { return "createintercomm" }

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
