package blackchannel

import (
	"maps"
	"slices"
)

// Release says that this rank's program has closed the communicator, or has ended. The rank raises
// nothing more on it, and the round that may be open is the last with an error of this rank. If the
// communicator is a carrier, the rank uses none of its duplicates either, and makes no other. Their
// rounds do not wait for it.
func (m *Machine) Release() {
	m.released = true
	if m == m.first {
		for _, d := range m.inOrder() {
			if d.released = true; !d.made {
				d.gone = true
				d.Join()
			}
		}
	}
	m.end()
}

// inOrder returns the machines of the duplicates.
func (c *copies) inOrder() (all []*Machine) {
	for _, id := range slices.Sorted(maps.Keys(c.duplicates)) {
		all = append(all, c.duplicates[id])
	}
	return all
}

// isReleased says whether all ranks of this rank's subtree have released the communicator. If they
// have released the carrier, they have released all its duplicates, also those which some of them
// have never made and know nothing of.
func (m *Machine) isReleased() bool {
	return m.released && m.below|m.first.below == 1<<m.children-1
}

// end tells the parent that the subtree has released the communicator, when it has and no round is
// open here. The root then tells all. As a carrier's Closed stands for those of its duplicates, it
// waits for their rounds too, and none of theirs follows it.
func (m *Machine) end() {
	open := m.open
	if m == m.first {
		for _, d := range m.inOrder() {
			d.end()
			open = open || d.open
		}
	}
	switch {
	case open || m.ended || m.first.ended || !m.isReleased():
		return
	case m.rank > 0:
		m.send(m.parent, bare(Closed, m.id, 0, false))
	default:
		m.endAll()
	}
	m.ended = true
}

// endAll passes on that all ranks have released the communicator. Only a rank that has made a
// duplicate has a client to tell.
func (m *Machine) endAll() {
	m.flood(m.parent, bare(Closed, m.id, 0, false), false)
	delete(m.duplicates, m.id)
	if m.made {
		m.tell(Output{Released: true})
	}
}
