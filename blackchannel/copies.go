package blackchannel

import "github.com/mpicx/go-mpicx/internal/errchan"

// Each member makes a duplicate (MPI_Comm_dup) when its program calls Dup. Until then it has no
// side of the duplicate. An error on the duplicate must not wait for it: all members that have made
// the duplicate are told at once (P8). So a duplicate has no messenger of its own. The messages of
// its machines use the messenger of another communicator with the same ranks, the carrier: its
// closest ancestor that is not a duplicate. A communicator carries the messages of all its
// duplicates, and of their duplicates. Each message says which of them it is about.
//
// A rank that gets a message about a duplicate that it has not made creates the machine of the
// duplicate. The machine passes messages on, and tells the client when there is one. It does not
// join, so the round does not end before this rank has made the duplicate, or released the carrier
// without it.

// copies is the state that one rank's machines of a carrier and its duplicates share. Like the
// machines, it is not safe for concurrent use.
type copies struct {
	first      *Machine            // of the carrier
	duplicates map[uint64]*Machine // by id; also those that this rank has not made yet; nil: none

	out errchan.Queue[Output] // of all these machines, in order
}

// Next returns the next output of a machine, and whether there is one.
func (c *copies) Next() (Output, bool) { return c.out.Pop() }

// duplicate returns the machine of a duplicate, which may not be made. When this rank has released
// the carrier, it does not make it any more.
func (c *copies) duplicate(id uint64) *Machine {
	d := c.duplicates[id]
	if d == nil {
		d = c.newMachine(id, c.first.rank, c.first.size)
		d.gone, d.released = c.first.released, c.first.released
		if c.duplicates == nil {
			c.duplicates = make(map[uint64]*Machine)
		}
		c.duplicates[id] = d
	}
	return d
}

// addressee returns the machine that a message is for, or nil. A message about a duplicate that
// this rank has not made belongs to no round or to the first one, which has no verdict yet. Others
// about a duplicate without a machine are of a rank that raises after its program has ended.
func (c *copies) addressee(msg *Message) *Machine {
	switch {
	case msg.Comm == 0:
		return c.first
	case c.duplicates[msg.Comm] == nil && (msg.Round > 0 || msg.Kind == Verdict):
		return nil
	}
	return c.duplicate(msg.Comm)
}

// Dup returns this rank's machine of a duplicate of m's communicator. The id is the same at all
// ranks, and unique among the duplicates of the first communicator and theirs. The client is told
// nothing before Listen.
func (m *Machine) Dup(id uint64) *Machine { return m.duplicate(id) }

// Listen says that there is a client.
func (m *Machine) Listen() {
	m.made = true
	for _, o := range m.held {
		m.out.Push(o)
	}
	m.held = nil
}
