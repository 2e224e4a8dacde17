package ulfmbackend

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// A Stream is a sequence of agreements of one communicator.
type Stream byte

const (
	// Errors are the rounds that resolve errors.
	Errors Stream = iota
	// Repairs are what programs call on any communicator: Agree and Shrink.
	Repairs
	// Creations make communicators. They are abandoned when the communicator is revoked, so
	// ranks may have begun different numbers of them when they come to a repair.
	Creations
	// Closings has one agreement, to which a rank proposes when its program has closed the
	// communicator and no round is open there, and for which no program waits (paper 000,
	// section 3.3). When the root decides, no rank can begin a round or wait for one, so all ranks
	// may forget the communicator. If a parent dies meanwhile, its children may not get the
	// decision, because the ranks above have forgotten the communicator. They then keep their sides
	// of it, as if a rank had not closed it. So do all if a rank leaves without closing it.
	Closings
	streams
)

// isCalled says whether programs ask for the agreements. These have one order with errors (H5).
func (k Stream) isCalled() bool { return k == Repairs || k == Creations }

// streamOf returns the stream of an agreement that programs ask for. In these streams the
// numbers start at 0 in each epoch.
func streamOf(id errchan.Agreement) Stream {
	if id.Creates {
		return Creations
	}
	return Repairs
}

// stream is one rank's part in a sequence of agreements: in the one under way, and in the
// one before it.
type stream struct {
	id     errchan.Agreement // the agreement under way
	joined bool              // this rank has proposed
	heard  []int             // the children, and later children, that have sent proposals
	value  Value             // their proposals and this rank's, combined
	sent   bool              // value has been sent to the present parent
	late   []errchan.Report  // reports in value that came after it was sent, and are still to be sent

	last *Message // the decision of agreement id.Seq-1; nil: there was none in this epoch
}

// stream returns this rank's part in stream k. Most ranks have agreed on nothing in an epoch, and
// have no memory for it.
func (m *Machine) stream(k Stream) *stream {
	if m.streams[k] == nil {
		s := &stream{value: neutral}
		if k.isCalled() {
			s.id = errchan.Agreement{Epoch: m.epoch, Creates: k == Creations}
		}
		m.streams[k] = s
	}
	return m.streams[k]
}

// end ends the agreement under way, and begins the next.
func (s *stream) end(decision *Message) {
	next := decision.ID
	next.Seq++
	*s = stream{id: next, value: neutral, last: decision}
}

// hear notes that a rank has sent a proposal.
func (s *stream) hear(from int) {
	if !slices.Contains(s.heard, from) {
		s.heard = append(slices.Clip(s.heard), from)
	}
}

// contribute adds v to the agreement under way, as a proposal of this rank.
func (m *Machine) contribute(k Stream, v Value) {
	s := m.stream(k)
	s.joined = true
	m.add(s, v)
	m.try(k)
	m.concede()
}

// add combines v with the stream's value. Reports that come after the value has been sent
// are sent after it: they may still be in time.
func (m *Machine) add(s *stream, v Value) {
	if s.sent && m.votes == nil {
		fresh := slices.DeleteFunc(slices.Clone(v.Reports), func(r errchan.Report) bool {
			_, known := slices.BinarySearchFunc(s.value.Reports, r, compareReports)
			return known
		})
		s.late = merge(s.late, fresh, compareReports, nil)
	}
	s.value = combine(s.value, v)
}

// follow returns a message with the reports that have come since this rank's value was sent, or
// nil. It is called only when a message can be sent, so that one message may have many reports.
func (m *Machine) follow() *Message {
	s := m.streams[Errors]
	if s == nil || len(s.late) == 0 {
		return nil
	}
	v := neutral
	v.Reports, s.late = s.late, nil
	return m.newUp(Errors, v)
}

// newUp returns this rank's proposal. In a round of errors the proposal serves the parent
// as a notice too, so it says whether this rank knows that the verdict will be final.
func (m *Machine) newUp(k Stream, v Value) *Message {
	up := newMessage(Up, k, m.stream(k).id, v)
	if k == Errors {
		up.Corrupt = m.notices.corrupt()
		m.notices.heard(&m.tree, m.up, up.Corrupt)
	}
	return up
}

// try sends a complete value to the parent; the root decides instead, unless it is frozen.
func (m *Machine) try(k Stream) {
	s, t := m.streams[k], m.treeOf(k)
	if s == nil || !s.joined || s.sent || !t.covers(s.heard) || t.up < 0 && m.frozen && k.isCalled() {
		return
	}
	m.addDead(k)
	switch {
	case m.isVoted(k):
		m.propose(k)
	case t.up >= 0:
		s.sent = true
		m.send(t.up, m.newUp(k, s.value))
	case !m.isForNobody(k):
		m.decide(m.newDecision(k))
	}
}

// newDecision returns the stream's value as a decision of this rank.
func (m *Machine) newDecision(k Stream) *Message {
	s := m.stream(k)
	d := newMessage(Decided, k, s.id, s.value)
	d.Origin = m.rank
	return d
}

// addDead adds to the value the dead that this rank knows of.
func (m *Machine) addDead(k Stream) {
	s := m.stream(k)
	s.value.Dead = union(s.value.Dead, m.dead)
	switch {
	case k == Errors:
		s.value.Dead = union(s.value.Dead, m.missed)
	case k.isCalled():
		s.value.Dead = union(s.value.Dead, union(m.reported, m.gone))
	}
}

// isForNobody says whether the programs of all living ranks have ended, so that the agreement under
// way need not be decided.
func (m *Machine) isForNobody(k Stream) bool {
	return k.isCalled() && len(m.stream(k).value.Dead) == m.size
}

// heardUp takes a proposal from a child, or from a rank that will be a child when this
// rank has also learned of the death of the rank's previous parent.
func (m *Machine) heardUp(from int, msg *Message) {
	s := m.stream(msg.Stream)
	if msg.ID.Seq != s.id.Seq {
		if msg.ID.Seq+1 == s.id.Seq { // its parent died with the decision
			m.answer(from, msg.Stream)
		}
		return
	}
	s.hear(from)
	m.add(s, *msg.Value)
	if msg.Stream == Errors {
		m.notice(from, msg.Corrupt)
	}
	m.try(msg.Stream)
}

// heardDecision takes a decision from the parent, or from a rank below whose parent has
// died. It ignores decisions from other ranks, as "Agreement" in the package's comment
// explains, and all decisions after this rank has joined a round of errors.
func (m *Machine) heardDecision(from int, msg *Message) {
	if m.frozen && msg.Stream.isCalled() {
		return
	}
	if msg.ID.Seq == m.stream(msg.Stream).id.Seq && (from == m.up || from > m.rank) {
		m.decide(msg)
		if from != m.up && m.up >= 0 {
			m.answer(m.up, msg.Stream)
		}
	}
}

// answer sends a rank the stream's last decision, if there is one.
func (m *Machine) answer(to int, k Stream) {
	if s := m.streams[k]; s != nil && s.last != nil {
		m.send(to, s.last)
	}
}

// decide ends the agreement under way, passes the decision on, and begins the next.
func (m *Machine) decide(decision *Message) {
	k := decision.Stream
	s := m.stream(k)
	heard := s.heard
	s.end(decision)
	for c := range m.eachChild {
		m.answer(c, k)
	}
	for _, r := range heard { // their parent may have died, which this rank may not know yet
		if !m.isDead(r) && !m.isChild(r) {
			m.answer(r, k)
		}
	}
	m.decided(decision)
}

// decided tells the client of a decision, and contributes this rank's proposal to the next
// agreement, if it has made one.
func (m *Machine) decided(decision *Message) {
	k, id := decision.Stream, decision.ID
	switch k {
	case Errors:
		m.resolved(decision.Verdict)
		return
	case Closings:
		m.released = true
		m.out.Push(Output{Released: true})
		return
	}
	m.settle(errchan.Settled{Comm: m.id, ID: id, Decision: decision.Decision, By: decision.Origin})
	m.out.Push(Output{Agreed: &Agreed{id, decision.Decision}})
	next := m.stream(k).id
	if v, ok := m.proposed[next]; ok {
		delete(m.proposed, next)
		m.contribute(k, v)
	}
	m.standIn()
}

// reparent sends the new parent in the tree the messages that may have been lost with the old one.
func (m *Machine) reparent() {
	for k := range streams {
		s := m.streams[k]
		if s == nil || m.isVoted(k) {
			continue
		}
		s.sent, s.late = false, nil
		if m.up >= 0 {
			m.answer(m.up, k)
		}
	}
}
