package ulfmbackend

// release is a rank's part in forgetting the communicator: a barrier up the tree and
// down again, for which nobody waits (paper 000, section 3.3). Who has closed the
// communicator, and has no round open there, says so to its parent once all below have;
// when the root knows of all, nobody is left who could begin a round or wait for one, and
// all are told. Who leaves and has not closed it keeps it there for all.
//
// That all have closed stays true, whatever dies: the news may come twice, and from
// anybody. Between two living ranks a verdict comes before it, as messages stay in order.
// Only where a parent dies between the two may its children hear of it no more, since
// those above have forgotten the communicator. They keep their sides, as if one of them
// had not closed.
type release struct {
	closed bool // by this rank's program
	below  set  // children with their subtrees
	sent   bool // to the present parent
	all    bool // have closed
	done   bool // the client was told
}

// Close says that the program has closed the communicator: no round is open, as far as this
// rank knows, and it raises nothing more there, proposes nothing, and waits for nothing.
func (m *Machine) Close() {
	m.release.closed = true
	m.tryRelease()
}

// tryRelease passes on that all have closed, as far as this rank knows.
func (m *Machine) tryRelease() {
	r := &m.release
	if r.done || !r.closed || m.dormant {
		return
	}
	below := m.covers(&r.below, &set{})
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
