package blackchannel

import "slices"

// A duplicate is made by each member when its program comes to that. A member
// that computes meanwhile has no side of it: what is sent to it along the
// duplicate's tree stays with its transport, and the members behind it are told
// nothing. So notices of the first round of a duplicate go along the tree of a
// communicator that all members have, its carrier: the nearest it is derived from
// that is no duplicate, or of which this rank knows that a round has ended, which
// takes all members. The two trees are the same, so that costs no message more
// than notices do, but where several ranks raise at once: each edge then has a
// notice in both directions.
//
// Ranks may know different carriers for one duplicate, and then two floods meet.
// A rank passes on the first message it gets, and the first that says corrupt if that is
// another, to all neighbours but the one it came from, and drops the rest, whichever
// carrier they come over: all are told.

// family is what one rank's machines of a communicator, of its duplicates, and of
// theirs, have in common.
type family struct {
	// duplicates are the machines of those that this rank has made and not closed,
	// by identity.
	duplicates map[uint64]*Machine
	// early are the notices for those that this rank has not made, by identity.
	early map[uint64]Noticed
	// closed are the last that this rank has closed, by identity, the next to be
	// overwritten at index next: a notice that another has made needless may still
	// be under way. One that comes even later stays in early for good.
	closed [16]uint64
	next   int
}

// kin returns m's family.
func (m *Machine) kin() *family {
	if m.family == nil {
		m.family = &family{duplicates: make(map[uint64]*Machine), early: make(map[uint64]Noticed)}
	}
	return m.family
}

// Dup returns this rank's machine of a duplicate of m's communicator. The id is the
// same at all ranks, and unique in the family. The new machine may have output at once.
func (m *Machine) Dup(id uint64) *Machine {
	d := new(Machine)
	d.init(m.rank, m.size)
	d.duplicates(m, id)
	return d
}

func (m *Machine) duplicates(of *Machine, id uint64) {
	m.id, m.family, m.carrier = id, of.kin(), of
	if of.carrier != nil { // of's may be missing somewhere, too
		m.carrier = of.carrier
	}
	m.carrier.carries++
	m.family.duplicates[id] = m
	if n, ok := m.family.early[id]; ok {
		delete(m.family.early, id)
		m.passed, m.passedFatal = true, n.Corrupt
		m.notice(n.By, n.Corrupt)
	}
}

// forward passes on a notice for a duplicate, and has this rank's machine of it
// told.
func (m *Machine) forward(from int, msg *Message) {
	f := m.kin()
	d := f.duplicates[msg.Child]
	if d != nil {
		if d.passed && (d.passedFatal || !msg.Corrupt) || d.carrier == nil { // a round has ended: all have been told
			return
		}
		d.passed, d.passedFatal = true, msg.Corrupt
	} else {
		if e, ok := f.early[msg.Child]; ok && (e.Corrupt || !msg.Corrupt) || slices.Contains(f.closed[:], msg.Child) {
			return
		}
		f.early[msg.Child] = Noticed{By: from, Corrupt: msg.Corrupt}
	}
	m.flood(from, msg, false)
	if d != nil {
		d.notice(from, msg.Corrupt)
		m.wake(d)
	}
}

// raiseAbove has the carrier take the notice of a round that this rank opens.
func (m *Machine) raiseAbove(corrupt bool) {
	m.passed, m.passedFatal = true, corrupt
	m.carrier.flood(m.rank, &Message{Kind: Forward, Child: m.id, Corrupt: corrupt}, false)
	m.wake(m.carrier)
}

// drop ends the need of a carrier: all members have their sides.
func (m *Machine) drop() {
	c := m.carrier
	if c == nil {
		return
	}
	m.carrier = nil
	if c.carries--; c.closed && c.carries == 0 {
		c.over = true
		m.wake(c)
	}
}

// Close says that all members have closed the communicator, and no error is under way
// on it. While a duplicate needs the machine as its carrier, it still takes and sends
// messages.
func (m *Machine) Close() {
	if m.closed {
		return
	}
	m.closed = true
	m.drop()
	if f := m.family; f != nil && f.duplicates[m.id] == m {
		delete(f.duplicates, m.id)
		f.closed[f.next] = m.id
		f.next = (f.next + 1) % len(f.closed)
	}
	m.over = m.carries == 0
}

func (m *Machine) wake(other *Machine) { m.woken = append(m.woken, other) }
