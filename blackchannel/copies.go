package blackchannel

import (
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// Each member makes a duplicate when its program comes to Dup. Until then it has no side of the
// duplicate. A message that comes to it along the duplicate's tree stays in its transport, and the
// members below it in the tree get nothing. Notices of the first round of a duplicate therefore go along
// the tree of a communicator that all members have, its carrier. The carrier is the nearest communicator
// that it is derived from that is no duplicate, or that has ended a round as far as this rank knows: this
// takes all members. The two trees are the same, so this costs no additional messages, with one
// exception: if several ranks raise at once, each edge has a notice in both directions.
//
// Ranks may know different carriers of one duplicate, so two floods may meet. A rank passes on the first
// notice that it gets, no matter over which carrier, to all neighbours except the one that it came from.
// It passes the first that says corrupt on too, and drops all others. So all ranks are told.

// copies is the state that one rank's machines of a communicator, of its duplicates, and of the
// duplicates of these share.
type copies struct {
	// duplicates are the machines of the duplicates that this rank has made and not closed, by id.
	duplicates map[uint64]*Machine
	// early are notices for duplicates that this rank has not made, by id.
	early map[uint64]errchan.Noticed
	// closed are the ids of the duplicates that this rank has closed last; closed[next] is
	// overwritten next. A superfluous notice for one of them may still be under way. If it comes
	// even later than that, it stays in early.
	closed [16]uint64
	next   int
}

// allCopies returns what m shares with the machines of its duplicates, and makes it if there is nothing yet.
func (m *Machine) allCopies() *copies {
	if m.copies == nil {
		m.copies = &copies{duplicates: make(map[uint64]*Machine), early: make(map[uint64]errchan.Noticed)}
	}
	return m.copies
}

// Dup returns this rank's machine of a duplicate of m's communicator. The id is the
// same at all ranks, and unique among these duplicates. The new machine may have output at once.
func (m *Machine) Dup(id uint64) *Machine {
	d := new(Machine)
	d.init(m.rank, m.size)
	d.duplicates(m, id)
	return d
}

func (m *Machine) duplicates(of *Machine, id uint64) {
	m.id, m.copies, m.carrier = id, of.allCopies(), of
	if of.carrier != nil { // some ranks may not have of either
		m.carrier = of.carrier
	}
	m.carrier.carries++
	m.copies.duplicates[id] = m
	if n, ok := m.copies.early[id]; ok {
		delete(m.copies.early, id)
		m.passed, m.passedFatal = true, n.Corrupt
		m.notice(n.By, n.Corrupt)
	}
}

// forward passes on a notice for a duplicate, and gives it to this rank's machine of the duplicate.
func (m *Machine) forward(from int, msg *Message) {
	f := m.allCopies()
	d := f.duplicates[msg.Child]
	if d != nil {
		if d.passed && (d.passedFatal || !msg.Corrupt) || d.carrier == nil { // carrier == nil: a round has ended, so all were told
			return
		}
		d.passed, d.passedFatal = true, msg.Corrupt
	} else {
		if e, ok := f.early[msg.Child]; ok && (e.Corrupt || !msg.Corrupt) || slices.Contains(f.closed[:], msg.Child) {
			return
		}
		f.early[msg.Child] = errchan.Noticed{By: from, Corrupt: msg.Corrupt}
	}
	m.flood(from, msg, false)
	if d != nil {
		d.notice(from, msg.Corrupt)
		m.wake(d)
	}
}

// raiseAbove gives the notice of a round that this rank opens to the carrier.
func (m *Machine) raiseAbove(corrupt bool) {
	m.passed, m.passedFatal = true, corrupt
	m.carrier.flood(m.rank, &Message{Kind: Forward, Child: m.id, Corrupt: corrupt}, false)
	m.wake(m.carrier)
}

// drop gives up the carrier, because all members have their sides.
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
	if f := m.copies; f != nil && f.duplicates[m.id] == m {
		delete(f.duplicates, m.id)
		f.closed[f.next] = m.id
		f.next = (f.next + 1) % len(f.closed)
	}
	m.over = m.carries == 0
}

func (m *Machine) wake(other *Machine) { m.woken = append(m.woken, other) }
