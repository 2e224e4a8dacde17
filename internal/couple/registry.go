package couple

import (
	"encoding/binary"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A Registry is one rank's part in the record of failed calls. Through it the members of one group
// learn that the call of the other group has failed, even if that group does not know them. A rank
// that waits for the members of the other group asks them about their call, and gets an answer only
// if the call has failed. An id, a digest, identifies the call of one group.
//
// It has no I/O. The caller feeds it, and sends what Next returns. Its methods are not safe for
// concurrent use. Ranks are those of the communicator of all ranks of the job.
type Registry struct {
	open   map[uint64][]int // this rank's calls that may still fail, and the ranks that have asked about them
	failed map[uint64]bool  // this rank's calls that have failed
	// inquiries are this rank's, by the id of the other group's call: members of that group, of
	// which the first is living and was asked, and the others are asked if it dies. The list is
	// empty if all members were asked, or all have died.
	inquiries map[uint64][]int
	dead      map[int]bool
	out       errchan.Queue[Message]
}

// A Message is to be sent to a rank.
type Message struct {
	To      int
	Payload []byte
}

// The first byte of a message says what the sender does: it asks about a call, or says that the
// call has failed. The id of the call follows, in 8 bytes.
const (
	asking byte = 1 + iota
	failing
)

// NewRegistry returns a rank's registry.
func NewRegistry() *Registry {
	return &Registry{open: make(map[uint64][]int), failed: make(map[uint64]bool), inquiries: make(map[uint64][]int), dead: make(map[int]bool)}
}

// Begin notes that this rank has begun a call.
func (m *Registry) Begin(id uint64) { m.open[id] = nil }

// End forgets a call of this rank, and the inquiry about the other group's call. If the call has
// failed, ranks that have asked, or ask later, are told.
func (m *Registry) End(id, other uint64, failed bool) {
	if failed {
		m.failed[id] = true
		for _, r := range m.open[id] {
			m.send(r, failing, id)
		}
	}
	delete(m.open, id)
	delete(m.inquiries, other)
}

// AskOne asks the first living member of another group about its call, and the next one when that
// one dies. One is enough if a call that has failed at one member has failed at all living members.
func (m *Registry) AskOne(id uint64, members []int) {
	members = slices.Clone(members)
	for len(members) > 0 && m.dead[members[0]] {
		members = members[1:]
	}
	if m.inquiries[id] = members; len(members) > 0 {
		m.send(members[0], asking, id)
	}
}

// AskAll asks all members of another group. The black channel needs that, because there a call may
// fail at some members only.
func (m *Registry) AskAll(id uint64, members []int) {
	m.inquiries[id] = nil
	for _, r := range members {
		m.send(r, asking, id)
	}
}

// Receive takes a message. It says whether the message has answered an inquiry about a call: that
// call has failed.
func (m *Registry) Receive(from int, payload []byte) (id uint64, answered bool) {
	if len(payload) != 9 {
		return 0, false
	}
	id = binary.LittleEndian.Uint64(payload[1:])
	asked, open := m.open[id]
	switch {
	case payload[0] == failing:
		_, answered = m.inquiries[id]
		delete(m.inquiries, id)
	case payload[0] == asking && m.failed[id]:
		m.send(from, failing, id)
	case payload[0] == asking && open:
		m.open[id] = append(asked, from)
	}
	return id, answered
}

// Died notes that a rank has died.
func (m *Registry) Died(rank int) {
	m.dead[rank] = true
	for id, members := range m.inquiries {
		if len(members) > 0 && members[0] == rank {
			m.AskOne(id, members)
		}
	}
}

func (m *Registry) send(to int, kind byte, id uint64) {
	m.out.Push(Message{to, binary.LittleEndian.AppendUint64([]byte{kind}, id)})
}

// Next returns the next message to send, and whether there is one.
func (m *Registry) Next() (Message, bool) { return m.out.Pop() }
