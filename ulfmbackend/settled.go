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

// prefer returns the one of two ends of an agreement that is true of the living: see
// Errors and agreements in the package's comment. It is the greater in an order, so
// that it does not matter in which sequence many are compared.
func prefer(a, b errchan.Settled) errchan.Settled {
	switch {
	case a.Decision == nil: // an error ended it, at a rank that had joined before all others
		return a
	case b.Decision == nil || b.By > a.By: // the decisions of roots before the last died with them
		return b
	}
	return a
}

// settledOf returns s as part of a Value.
func settledOf(s []errchan.Settled) (v []errchan.Settled) {
	for _, one := range s {
		v = merge(v, []errchan.Settled{one}, compareSettled, prefer)
	}
	return v
}

// A history is how the last agreements of recent epochs ended, as far as one rank knows.
// Others may not: each may have to get the verdict still that ended an epoch here, but
// just one of each communicator.
type history struct {
	epochs []past // in the order in which this rank was in them, the present one last
}

// past is what became of an epoch. Nobody changes what its slices have.
type past struct {
	epoch   transport.Epoch
	since   []int             // the generations of the errors that came after it
	settled []errchan.Settled // of each stream the last decision, and what an error came before
}

// find returns what became of an epoch, or nil if it is not recent.
func (h *history) find(e transport.Epoch) *past {
	for i := range h.epochs {
		if h.epochs[i].epoch == e {
			return &h.epochs[i]
		}
	}
	return nil
}

// note notes how an agreement ended, unless that is known.
func (h *history) note(s errchan.Settled) {
	p := h.find(s.ID.Epoch)
	if p == nil {
		return
	}
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

// end returns how an agreement ended, if that is known: by a decision, or by an error,
// nil. What is before the last decision was decided, but is forgotten.
func (h *history) end(id errchan.Agreement) (d *errchan.Decision, known bool) {
	if p := h.find(id.Epoch); p != nil {
		for _, s := range p.settled {
			if s.ID == id {
				return s.Decision, true
			}
		}
	}
	return nil, false
}

// begin begins epoch e.
func (h *history) begin(e transport.Epoch) { h.epochs = append(slices.Clip(h.epochs), past{epoch: e}) }

// advance begins epoch e after an error of the given generation. It forgets the epochs
// that no living rank is in any more, but for those that keep names.
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

// all returns what is known of recent epochs, ordered.
func (h *history) all() []errchan.Settled {
	all := []errchan.Settled{}
	for _, p := range h.epochs {
		all = append(all, p.settled...)
	}
	slices.SortFunc(all, compareSettled)
	return all
}

// Freeze stops decisions of this rank, except verdicts, until Advance allows them. The
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

// End returns the end of an agreement, if it is known and recent: its decision, or nil
// if an error came before it.
func (m *Machine) End(id errchan.Agreement) (d *errchan.Decision, known bool) { return m.past.end(id) }

// IsOpen says whether an agreement of an old epoch, to which this rank has made a
// proposal, may have been decided. A later verdict tells.
func (m *Machine) IsOpen(id errchan.Agreement) bool { return slices.Contains(m.open, id) }

// Advance begins epoch e after an error of the given generation. Agreements of the old
// epoch are over. But if a member is lost, a round which this rank has joined, so that it
// is frozen, may settle them.
func (m *Machine) Advance(generation int, e transport.Epoch, frozen, lost bool) {
	var open []errchan.Agreement
	under := m.contributed()
	for i, id := range append(slices.Clip(m.open), under...) {
		switch _, known := m.past.end(id); {
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
	later := m.later
	m.later = nil
	for _, r := range later {
		m.call(r.from, r.msg)
	}
	if m.native != nil {
		m.again()
		m.standIn()
	}
}

// contributed returns the agreements under way that the program has proposed to.
func (m *Machine) contributed() (ids []errchan.Agreement) {
	for _, k := range []Stream{Repairs, Creations} {
		if s := &m.streams[k]; s.joined && !m.left {
			ids = append(ids, s.id)
		}
	}
	return ids
}
