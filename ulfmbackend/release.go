package ulfmbackend

// release is a rank's part in the release of the communicator: a barrier up the tree and
// down again, for which no program waits (paper 000, section 3.3). A rank that has closed
// the communicator, and has no round open there, tells its parent when its whole subtree has
// closed it. When the root knows that all ranks have closed it, no rank can begin a round or
// wait for one, and the root tells all ranks. A rank that leaves without closing the
// communicator prevents its release at all ranks.
//
// Once all ranks have closed the communicator, deaths do not change this. The message that
// says so may therefore come twice, and from any rank. Messages between two living ranks
// stay in order, so a verdict comes before it. If a parent dies between the two messages, its
// children may not get the second, because the ranks above have forgotten the communicator.
// They then keep their sides of it, as if a rank had not closed it.
type release struct {
	closed bool // this rank's program has closed the communicator
	below  set  // children whose whole subtree has closed it
	sent   bool // the present parent was told
	all    bool // all ranks have closed it
	done   bool // the client was told
}

// Close says that the program has closed the communicator: as far as this rank knows no
// round is open, and the rank raises nothing more there, proposes nothing, and waits for
// nothing.
func (m *Machine) Close() {
	m.release.closed = true
	m.tryRelease()
}

// tryRelease tells the parent that this subtree has closed the communicator, or the
// children that all ranks have, when this rank knows it.
func (m *Machine) tryRelease() {
	r := &m.release
	if r.done || !r.closed || m.dormant {
		return
	}
	below := m.covers(&r.below)
	switch {
	case r.all || below && m.up < 0:
		r.done = true
		m.eachChild(func(c int) bool {
			m.send(c, &Message{Kind: Released})
			return true
		})
		m.out.push(Output{Released: true})
	case below && !r.sent:
		r.sent = true
		m.send(m.up, &Message{Kind: Closed})
	}
}
