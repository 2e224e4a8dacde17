package main

import (
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/internal/ledger"
)

// close closes all communicators of programs that have not ended, at random times and in any order.
// Some are revoked just before.
func (r *run) close() {
	for _, p := range r.processes {
		p.sends = 0 // no more deaths
		for _, m := range p.sides {
			if !p.left && !p.dead() {
				p.after(r.span+r.think, m.close)
			}
		}
	}
	r.step()
}

func (m *member) close() {
	m.note("closes")
	m.data.Cancel(&m.recv)
	if m.ulfm != nil && m.rng.IntN(8) == 0 {
		m.revoke()
	}
	m.feed(m.Comm.Close)
}

// Released closes the member's sides.
func (m *member) Released() {
	if m.dead() {
		return
	}
	m.note("is released")
	living, complete := m.survivors()
	if m.released || !complete || slices.ContainsFunc(living, func(o *member) bool { return !o.IsClosed() }) {
		m.fail("H6: rank %d is told that all have closed a team, all have it %t, it was told before %t", m.world, complete, m.released)
	}
	m.released = true
	m.forgotten()
}

func (m *member) forgotten() {
	gone := false
	if m.feed(func() { gone = m.Comm.Forgotten() }); gone {
		_, _ = m.ch.Close(), m.data.Close()
	}
}

// forget holds if a team that all ranks have closed is forgotten by all. The world is kept.
func (t *team) forget() error {
	if t.parent == nil || !t.allClose() {
		return nil
	}
	living, _ := t.survivors()
	for _, m := range living {
		if !m.released {
			return fmt.Errorf("rank %d keeps a team that all have closed", m.world)
		}
	}
	return nil
}

// allClose reports whether all survivors have made the team and closed it, and nothing is pending
// there, and whether this holds for all kept teams that are derived from it.
func (t *team) allClose() bool {
	living, _ := t.survivors()
	return t.isWhole() && !slices.ContainsFunc(living, func(m *member) bool {
		return m.left || m.pending > 0 || slices.ContainsFunc(m.Children(), func(d *ledger.Comm) bool { return !ownerOf(d).allClose() })
	})
}
