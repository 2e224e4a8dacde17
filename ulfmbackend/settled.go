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

// note notes how an agreement ended, unless this is known. Past has the last decision of each
// stream, and the agreements that an error ended, for the verdicts that come. Other ranks may still
// be in such an epoch: each may lack the verdict that ended it here, but at most one verdict of
// each communicator. Ends in epochs that all ranks have left are forgotten, except where an
// agreement is open.
func (m *Machine) note(s errchan.Settled) {
	after := func(a, b errchan.Agreement) bool {
		return a.Epoch == b.Epoch && a.Creates == b.Creates && a.Seq > b.Seq
	}
	known := func(old errchan.Settled) bool {
		return old.ID == s.ID || after(old.ID, s.ID) && old.Decision != nil
	}
	if s.ID.Epoch.IsPast(m.epoch) && !m.hasOpen(s.ID.Epoch) || slices.ContainsFunc(m.past, known) {
		return
	}
	m.past = slices.DeleteFunc(slices.Clone(m.past), func(old errchan.Settled) bool {
		return after(s.ID, old.ID) && s.Decision != nil
	})
	m.past = append(m.past, s)
}

// Freeze stops all decisions of this rank except verdicts, until Advance allows them. The
// machine still takes and passes on proposals. Freeze returns the agreements that go
// into the verdict.
func (m *Machine) Freeze() []errchan.Settled {
	m.frozen = true
	if len(m.past) == 0 {
		return []errchan.Settled{}
	}
	return slices.SortedFunc(slices.Values(m.past), compareSettled)
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
	m.note(s)
	if s.Decision != nil {
		m.gone = union(m.gone, s.Decision.Dead)
	}
}

// End returns how an agreement ended, if this is known: its decision, or nil if an error ended it.
// Decisions before a stream's last one are forgotten.
func (m *Machine) End(id errchan.Agreement) (d *errchan.Decision, known bool) {
	for _, s := range m.past {
		if s.ID == id {
			return s.Decision, true
		}
	}
	return nil, false
}

// IsOpen says whether a later verdict may complete an agreement of an old epoch, to which
// this rank has made a proposal.
func (m *Machine) IsOpen(id errchan.Agreement) bool { return slices.Contains(m.open, id) }

// hasOpen says whether an agreement of epoch e is open.
func (m *Machine) hasOpen(e transport.Epoch) bool {
	return slices.ContainsFunc(m.open, func(id errchan.Agreement) bool { return id.Epoch == e })
}

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
			m.note(errchan.Settled{Comm: m.id, ID: id})
		}
	}
	m.open, m.frozen = open, frozen
	m.past = slices.DeleteFunc(slices.Clone(m.past), func(s errchan.Settled) bool {
		return s.ID.Epoch.Missing(e, generation) > 1 && !m.hasOpen(s.ID.Epoch)
	})
	m.epoch, m.streams[Repairs], m.streams[Creations], m.proposed = e, nil, nil, nil
	m.takeLater()
	m.standIn()
}

// contributed returns the agreements under way to which the program has proposed.
func (m *Machine) contributed() (ids []errchan.Agreement) {
	for _, k := range []Stream{Repairs, Creations} {
		if s := m.streams[k]; s != nil && s.joined && !m.left {
			ids = append(ids, s.id)
		}
	}
	return ids
}
