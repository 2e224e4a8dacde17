package ulfmbackend

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/binomial"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// native replaces a Machine's floods and mended tree if an MPI library revokes and agrees:
// see "Native" in the package's comment.
type native struct {
	living  []int                  // the members of the tree, ascending; the same at all ranks
	trees   uint64                 // how many trees there were before this one
	votes   uint64                 // how many votes have ended
	voting  bool                   // this rank has voted, and the vote has not ended
	ballot  *Message               // the candidate of that vote
	held    []received             // messages of later votes, trees, epochs or agreements
	noticed [transport.Topics]bool // topics of notices that came from the library or were given to it
	// renewals is how many rounds have ended without a renewal of the communicator of
	// Signals so far. Each round needs one renewal, one after the other.
	renewals int
}

// The first word of a vote has these bits; all others say which ranks are alive.
const (
	accepted    = 1 << iota // the candidate can be taken
	firstLiving = iota
)

// Native starts a dormant machine whose library is ready.
func (m *Machine) Native() {
	n := new(native)
	for r := range m.size {
		n.living = append(n.living, r)
	}
	m.native, m.dormant = n, false
	m.callRevoke(&m.notices, transport.Signals)
	m.callRevoke(&m.revokes, transport.Revocations)
	asleep := m.asleep
	m.asleep = nil
	for _, r := range asleep {
		if m.Step(r.from, r.msg) != nil {
			m.Accuse()
		}
	}
	if len(m.dead) > 0 || m.fallen {
		m.forgo()
	}
	m.retry()
}

// callRevoke makes the library tell all ranks what a flood would.
func (m *Machine) callRevoke(f *flood, topic transport.Topic) {
	if m.native == nil || !f.open {
		return
	}
	if topic == transport.Signals && (f.notice.Corrupt || m.native.renewals > 0 && len(m.dead) > 0) {
		topic = transport.Corruptions
	}
	if seen := &m.native.noticed[topic]; !*seen && !(topic == transport.Signals && m.native.renewals > 0) {
		*seen = true
		m.out.push(Output{Call: &Call{Revoke: topic}})
	}
}

// Heard says that the library has brought a notice.
func (m *Machine) Heard(topic transport.Topic) {
	n := m.native
	if topic == transport.Signals && n.renewals > 0 { // it is of the round before
		return
	}
	n.noticed[topic] = true
	if topic == transport.Revocations {
		m.revoke(m.rank, &Message{Kind: Revoke, Origin: m.rank})
	} else {
		m.notice(m.rank, topic == transport.Corruptions)
	}
}

// Renewed says that notices of signals can be given again.
func (m *Machine) Renewed() {
	if m.native.renewals--; m.native.renewals > 0 {
		m.callRenew()
	}
	m.callRevoke(&m.notices, transport.Signals)
}

// callRenew renews the communicator of Signals, unless a rank has died: all ranks have to
// take part.
func (m *Machine) callRenew() {
	if len(m.dead) == 0 {
		m.out.push(Output{Call: &Call{Renew: true}})
	}
}

// Fall says that this process is dead for the others. It votes for whatever they decide.
func (m *Machine) Fall() {
	m.fallen = true
	m.forgo()
	m.concede()
}

// place returns this rank's place in the tree, or -1.
func (m *Machine) place() int {
	i, found := slices.BinarySearch(m.native.living, m.rank)
	if !found {
		return -1
	}
	return i
}

// above returns the parent in the tree; -1: there is none.
func (m *Machine) above() int {
	if i := m.place(); i > 0 {
		return m.native.living[binomial.Parent(i)]
	}
	return -1
}

// eachBelow calls visit for the children in the tree.
func (m *Machine) eachBelow(visit func(int)) {
	n := m.native
	i := m.place()
	for k := binomial.Children(i, len(n.living)) - 1; k >= 0; k-- {
		visit(n.living[binomial.Child(i, k)])
	}
}

// propose sends a complete value to the parent; the root sends it to all ranks, as a
// candidate on which the library agrees.
func (m *Machine) propose(k Stream) {
	s, n := &m.streams[k], m.native
	if !s.joined || s.sent || m.fallen || m.place() < 0 {
		return
	}
	complete := true
	m.eachBelow(func(c int) { complete = complete && slices.Contains(s.heard.more, c) })
	up := m.above()
	if !complete || up < 0 && (m.frozen && k != Errors || n.voting) {
		return
	}
	m.addDead(k)
	if up < 0 && m.isForNobody(k) {
		return
	}
	s.sent = true
	if up >= 0 {
		msg := m.newUp(k, s.value)
		msg.vote = n.trees
		m.send(up, msg)
		return
	}
	candidate := newMessage(Decided, k, s.id, s.value)
	candidate.Origin, candidate.vote = m.rank, n.votes
	m.voteFor(candidate)
}

// stepNative takes a proposal or a candidate. It holds those of later votes, trees, epochs or
// agreements.
func (m *Machine) stepNative(from int, msg *Message) {
	n, s := m.native, &m.streams[msg.Stream]
	ahead := msg.Stream == Errors && msg.ID.Seq > s.id.Seq ||
		msg.Stream != Errors && !msg.ID.Epoch.Stale(s.id.Epoch) && (msg.ID.Epoch != s.id.Epoch || msg.ID.Seq > s.id.Seq)
	switch {
	case msg.Kind == Decided && msg.vote > n.votes:
		n.held = append(n.held, received{from, msg})
	case msg.Kind == Decided && msg.vote == n.votes && !n.voting:
		m.voteFor(msg)
	case msg.Kind == Decided: // this rank has voted without it
	case msg.vote > n.trees || ahead:
		n.held = append(n.held, received{from, msg})
	case msg.vote == n.trees && msg.ID == s.id:
		s.heard.more = append(s.heard.more, from)
		m.add(s, *msg.Value)
		if msg.Stream == Errors {
			m.notice(from, msg.Corrupt)
		}
		m.propose(msg.Stream)
	}
}

// voteFor passes a candidate on, and votes for it if this rank can take it.
func (m *Machine) voteFor(candidate *Message) {
	m.eachBelow(func(c int) { m.send(c, candidate) })
	m.native.ballot = candidate
	m.vote(m.canTake(candidate))
}

// canTake says whether this rank can take a candidate: it has joined that agreement, is not
// frozen, and is not in another epoch.
func (m *Machine) canTake(candidate *Message) bool {
	if candidate == nil { // this rank has voted without one
		return false
	}
	s := &m.streams[candidate.Stream]
	return s.joined && s.id == candidate.ID && (candidate.Stream == Errors || !m.frozen)
}

// vote begins an agreement of the library on whether the candidate is taken and which ranks
// are alive.
func (m *Machine) vote(accepts bool) {
	n := m.native
	n.voting = true
	words := make([]uint32, (m.size+firstLiving+31)/32)
	for i := range words {
		words[i] = ^uint32(0)
	}
	if !accepts {
		words[0] &^= accepted
	}
	if !m.fallen {
		for _, r := range m.dead {
			words[(r+firstLiving)/32] &^= 1 << ((r + firstLiving) % 32)
		}
	}
	m.out.push(Output{Call: &Call{Agree: words}})
}

// Voted takes the result of a vote.
func (m *Machine) Voted(words []uint32) {
	n := m.native
	candidate := n.ballot
	n.voting, n.ballot = false, nil
	n.votes++
	before := len(n.living)
	n.living = slices.DeleteFunc(n.living, func(r int) bool {
		return words[(r+firstLiving)/32]&(1<<((r+firstLiving)%32)) == 0
	})
	for k := range m.streams {
		if s := &m.streams[k]; len(n.living) < before {
			s.heard, s.sent = set{}, false
		}
	}
	if len(n.living) < before {
		n.trees++
	}
	if words[0]&accepted != 0 && m.canTake(candidate) {
		m.begin(candidate)
		m.decided(candidate)
	}
	m.again()
	m.retry()
}

// again takes the held messages.
func (m *Machine) again() {
	held := m.native.held
	m.native.held = nil
	for _, r := range held {
		m.stepNative(r.from, r.msg)
	}
}

// concede votes without a candidate if this rank waits for one and a member of the tree is
// dead, because the candidate may never come. If this process itself is dead for the others,
// concede always votes.
func (m *Machine) concede() {
	n := m.native
	if n == nil || n.voting {
		return
	}
	waits := slices.ContainsFunc(m.streams[:], func(s stream) bool { return s.joined })
	if m.fallen || waits && slices.ContainsFunc(n.living, m.isDead) {
		m.vote(m.fallen)
	}
}

// begin ends the agreement that was decided, and begins the next.
func (m *Machine) begin(decision *Message) {
	s := &m.streams[decision.Stream]
	s.last = decision
	next := decision.ID
	next.Seq++
	s.begin(next)
}

// renew renews the communicator of Signals for the next round, unless the verdict was final.
func (m *Machine) renew() {
	if n := m.native; n != nil && !m.final {
		n.noticed[transport.Signals] = false
		if n.renewals++; n.renewals == 1 {
			m.callRenew()
		}
	}
}

// forgo gives up renewals after a death: the next verdict will be final, and a corruption
// has a notice of its own.
func (m *Machine) forgo() {
	if m.native != nil {
		m.out.push(Output{Call: &Call{Forgo: true}})
		m.callRevoke(&m.notices, transport.Signals)
	}
}
