package mpicx

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// A registry is one rank's part in the record of failed calls of CreateIntercomm. Through it the
// members of one group learn that the call of the other group has failed, even if that group does
// not know them. Its messages go among all ranks of the job. A digest, the id, identifies the call
// of one group. A rank that waits for the members of the other group asks one of them about their
// call. It gets an answer only if the call has failed.
type registry struct {
	t transport.Messenger

	outbox                        // its mu protects the following fields
	open      map[uint64][]int    // this rank's calls that may still fail, and the ranks that have asked
	failed    map[uint64]bool     // this rank's calls that have failed
	inquiries map[uint64]*inquiry // this rank's inquiries, by the id of the other group's call
	dead      map[int]bool        // the ranks that have died
}

// An inquiry is a rank's question about the call of another group.
type inquiry struct {
	members []int  // of the other group
	at      int    // the index in members of the one that is asked
	failed  func() // called once, without mu, if the call has failed
}

// The first byte of a message says what the sender does: it asks about a call, or says that the
// call has failed. The id of the call follows, in 8 bytes.
const (
	asking byte = 1 + iota
	failing
)

func newRegistry() *registry {
	return &registry{open: make(map[uint64][]int), failed: make(map[uint64]bool), inquiries: make(map[uint64]*inquiry), dead: make(map[int]bool)}
}

// begin notes that this rank has begun the call with this id.
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

// ask asks one member of another group about the group's call. It begins with members[at], and asks
// the next living member when that one dies. One is enough, because a call that has failed at one
// member has failed at all living members.
func (g *registry) ask(id uint64, members []int, at int, failed func()) {
	g.mu.Lock()
	i := &inquiry{members, at % len(members), failed}
	g.inquiries[id] = i
	g.pursue(id, i)
	g.mu.Unlock()
	g.t.Poke()
}

// askAll asks all members. The black channel needs that: there the call may fail at some members
// only.
func (g *registry) askAll(id uint64, members []int, failed func()) {
	g.mu.Lock()
	g.inquiries[id] = &inquiry{members, 0, failed}
	for _, r := range members {
		g.tell(r, asking, id)
	}
	g.mu.Unlock()
	g.t.Poke()
}

// pursue asks the first living member from i.at on. The caller holds mu.
func (g *registry) pursue(id uint64, i *inquiry) {
	for range i.members {
		if r := i.members[i.at]; !g.dead[r] {
			g.tell(r, asking, id)
			return
		}
		i.at = (i.at + 1) % len(i.members)
	}
}

// tell queues a message. The caller holds mu.
func (g *registry) tell(to int, what byte, id uint64) {
	g.push(to, binary.LittleEndian.AppendUint64([]byte{what}, id)...)
}

// Take receives a message.
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

// Died notes that a rank has died. If an inquiry waits for its answer, Died asks the next living
// member instead.
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

// An outbox holds the messages that a listener is about to send, in order.
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
