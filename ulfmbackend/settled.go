package ulfmbackend

import (
	"cmp"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// compareSettled orders by communicator and agreement.
func compareSettled(a, b errchan.Settled) int {
	return cmp.Or(cmp.Compare(a.Comm, b.Comm), compareAgreements(a.ID, b.ID))
}

func compareAgreements(a, b errchan.Agreement) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(streamOf(a), streamOf(b)), cmp.Compare(a.Seq, b.Seq))
}

// prefer returns which of two ends of an agreement all living ranks have: see "Errors and
// agreements" in the package's comment. It is the maximum in an order of ends, so the
// sequence of comparisons does not matter.
func prefer(a, b errchan.Settled) errchan.Settled {
	switch {
	case a.Decision == nil: // an error ended it without a decision
		return a
	case b.Decision == nil || b.By > a.By: // all ranks that had the decision of an earlier root are dead
		return b
	}
	return a
}

// A history has the ends of the last agreements of recent epochs, as far as one rank knows them.
// Other ranks may still be in such an epoch: each may lack the verdict that ended it here, but
// at most one verdict of each communicator.
type history struct {
	epochs []past // in the order in which this rank was in them, the present one last
}

// A past has the ends of one epoch's agreements. The elements of its slices are never changed.
type past struct {
	epoch   transport.Epoch
	since   []int             // the generations of the errors that came after it
	settled []errchan.Settled // the last decision of each stream, and the agreements that an error ended
}

// note notes how an agreement ended, unless this is known.
func (h *history) note(s errchan.Settled) {
	i := slices.IndexFunc(h.epochs, func(p past) bool { return p.epoch == s.ID.Epoch })
	if i < 0 {
		return // it is forgotten
	}
	p := &h.epochs[i]
	later := func(old errchan.Settled) bool {
		return old.ID == s.ID || old.ID.Creates == s.ID.Creates && old.ID.Seq > s.ID.Seq && old.Decision != nil
	}
	if slices.ContainsFunc(p.settled, later) {
		return
	}
	p.settled = slices.DeleteFunc(slices.Clone(p.settled), func(old errchan.Settled) bool {
		return old.ID.Creates == s.ID.Creates && old.ID.Seq < s.ID.Seq && s.Decision != nil
	})
	p.settled = append(p.settled, s)
}

// begin begins epoch e.
func (h *history) begin(e transport.Epoch) { h.epochs = append(slices.Clip(h.epochs), past{epoch: e}) }

// advance begins epoch e after an error of the given generation. It forgets the epochs
// that all living ranks have left, except those of the agreements in keep.
func (h *history) advance(generation int, e transport.Epoch, keep []errchan.Agreement) {
	epochs := make([]past, 0, len(h.epochs)+1)
	for _, p := range h.epochs {
		again := slices.Contains(p.since, generation)
		if again && !slices.ContainsFunc(keep, func(id errchan.Agreement) bool { return id.Epoch == p.epoch }) {
			continue
		}
		if !again {
			p.since = append(slices.Clip(p.since), generation)
		}
		epochs = append(epochs, p)
	}
	h.epochs = epochs
	h.begin(e)
}

// all returns the ends of all agreements that are not forgotten, in order.
func (h *history) all() []errchan.Settled {
	all := []errchan.Settled{}
	for _, p := range h.epochs {
		all = append(all, p.settled...)
	}
	slices.SortFunc(all, compareSettled)
	return all
}

// Freeze stops all decisions of this rank except verdicts, until Advance allows them. The
// machine still takes and passes on proposals. Freeze returns the agreements that go
// into the verdict.
func (m *Machine) Freeze() []errchan.Settled {
	m.frozen = true
	return m.past.all()
}

// Complete notes the settled agreements of this communicator, from a verdict.
func (m *Machine) Complete(settled []errchan.Settled) {
	for _, s := range settled {
		if s.Comm == m.id {
			m.settle(s)
		}
	}
}

// settle notes how an agreement ended.
func (m *Machine) settle(s errchan.Settled) {
	m.past.note(s)
	if s.Decision != nil {
		m.gone = union(m.gone, s.Decision.Dead)
	}
}

// End returns how an agreement ended, if this is known: its decision, or nil if an error ended it.
// Decisions before a stream's last one are forgotten.
func (m *Machine) End(id errchan.Agreement) (d *errchan.Decision, known bool) {
	for _, p := range m.past.epochs {
		for _, s := range p.settled {
			if s.ID == id {
				return s.Decision, true
			}
		}
	}
	return nil, false
}

// IsOpen says whether a later verdict may complete an agreement of an old epoch, to which
// this rank has made a proposal.
func (m *Machine) IsOpen(id errchan.Agreement) bool { return slices.Contains(m.open, id) }

// Advance begins epoch e after an error of the given generation. The agreements of the old
// epoch are over, with one exception: if a member is lost, and this rank is frozen because
// it has joined another round, then the verdict of that round may complete them.
func (m *Machine) Advance(generation int, e transport.Epoch, frozen, lost bool) {
	var open []errchan.Agreement
	under := m.contributed()
	for i, id := range append(slices.Clip(m.open), under...) {
		switch _, known := m.End(id); {
		case known:
		case frozen && (lost || i < len(m.open)):
			open = append(open, id)
		default:
			m.past.note(errchan.Settled{Comm: m.id, ID: id})
		}
	}
	m.open, m.frozen = open, frozen
	m.past.advance(generation, e, open)
	m.enter(e)
	m.takeLater()
	m.standIn()
}

// contributed returns the agreements under way to which the program has proposed.
func (m *Machine) contributed() (ids []errchan.Agreement) {
	for _, k := range []Stream{Repairs, Creations} {
		if s := &m.streams[k]; s.joined && !m.left {
			ids = append(ids, s.id)
		}
	}
	return ids
}
