package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// after has the program go on after a while.
func (m *member) after(most time.Duration, f func()) { m.w.After(upTo(m.rng, most), m.world, f) }

// times calls f as often as expected on average.
func (m *member) times(expected float64, f func()) {
	for ; m.rng.Float64() < expected; expected-- {
		m.after(m.span, f)
	}
}

// begin draws what the program does besides agreeing.
func (m *member) begin() {
	m.listen()
	if m.left {
		m.mit.Leave()
		return
	}
	m.work()
	m.times(m.raises, func() { m.raise(m.rng.IntN(12) == 0) })
	m.times(m.revokes, m.revoke)
	m.times(m.leaves, m.leave)
	for range m.traffic {
		m.after(m.span+m.think, m.send)
	}
}

func (m *member) outstanding() bool {
	own := 0
	for _, v := range m.verdicts {
		own += reportsOf(v, m.rank)
	}
	return m.raised > own
}

func (m *member) raise(corrupt bool) {
	if m.final || m.left || m.unwound || m.revoked > 0 {
		return
	}
	m.raised++
	m.unwound = m.unwound || corrupt
	m.consent()
	m.note("raises", m.raised, corrupt)
	m.ch.Raise(label(m.rank, m.raised), corrupt, m.freeze())
}

// label is the data of a rank's k-th report.
func label(rank, k int) []byte { return fmt.Appendf(nil, "%d.%d", rank, k) }

func (m *member) revoke() {
	if !m.left {
		m.note("revokes")
		m.mit.Revoke()
	}
}

// leave ends the program of the process, on all its communicators.
func (m *member) leave() {
	if m.left {
		return
	}
	m.note("leaves")
	m.left = true
	if m.rng.IntN(3) == 0 && !m.final && !m.unwound && m.revoked == 0 {
		m.raised++
		m.departed = true
		m.consent()
		m.mit.Unwind(label(m.rank, m.raised), m.freeze())
	}
	for _, other := range m.sides {
		other.mit.Leave()
		other.join(uint64(len(other.verdicts)))
	}
}

// work begins the agreements of an epoch.
func (m *member) work() {
	if m.mit != nil && !m.left && m.dups && m.generation < 2 && m.revoked == 0 {
		id := m.mit.Reserve(m.epoch, errchan.Dup)
		m.after(m.think, func() { m.propose(id, func() {}) })
	}
	switch {
	case m.mit == nil || m.left || m.calls == 0:
	case m.rng.Float64() < m.early:
		for range m.calls {
			id := m.mit.Reserve(m.epoch, 0)
			m.after(m.think, func() { m.propose(id, func() {}) })
		}
	default:
		m.next()
	}
}

// next is for a program that waits for each agreement before it begins the next.
func (m *member) next() {
	if m.left {
		return
	}
	id := m.mit.Reserve(m.epoch, 0)
	m.after(m.think, func() {
		m.propose(id, func() {
			if id.Seq+1 < uint64(m.calls) {
				m.next()
			}
		})
	})
}

// isShrink says what an agreement is for.
func (t *team) isShrink(id errchan.Agreement) bool {
	return !id.Creates && int(id.Seq) == t.shrink && t.generation < 2
}

func (m *member) propose(id errchan.Agreement, then func()) {
	if m.left {
		return
	}
	p := errchan.Proposal{Flag: -1}
	if !m.isShrink(id) && !id.Creates {
		p.Flag = ^(1 << (m.rank % 62))
		m.acked += m.rng.IntN(len(m.failed) - m.acked + 1)
		p.Acked = sortedCopy(m.failed[:m.acked])
	}
	m.note("proposes", id, m.open)
	late := id.Epoch != m.epoch
	if !late && !(id.Creates && m.revoked > 0) {
		m.proposals[id] = append(m.proposals[id], proposal{m, p, len(m.failed)})
	}
	m.pending++
	ended := false
	m.mit.Propose(id, p, func(d *errchan.Decision, err error) {
		if m.dead() {
			return
		}
		m.pending--
		over := id.Epoch != m.epoch || id.Creates && m.revoked > 0
		if ended || late && err == nil || err != nil && !over {
			m.fail("H5: agreement %v at rank %d in epoch %x ends with %+v, %v, and ended before: %t", id, m.world, m.epoch, d, err, ended)
		}
		if ended = true; err == nil {
			m.decide(id, d)
			then()
		}
	})
}

func (m *member) decide(id errchan.Agreement, d *errchan.Decision) {
	m.note("agrees", id, *d)
	m.digest ^= uint64(d.Flag)
	if m.left {
		return // there is nobody to be told, and it need not be true
	}
	m.decided = append(m.decided, decided{id, d})
	for _, r := range d.Dead {
		m.learn(r)
	}
	if !m.isShrink(id) && !(id.Creates && len(d.Dead) == 0) {
		return
	}
	var group, ranks []int
	without := fnv.New64a()
	for r := range m.ranks {
		if _, dead := slices.BinarySearch(d.Dead, r); !dead {
			group, ranks = append(group, r), append(ranks, m.ranks[r])
		} else {
			fmt.Fprintln(without, r)
		}
	}
	if own := slices.Index(group, m.rank); own >= 0 {
		name := transport.Name{Epoch: id.Epoch, Seq: id.Seq, Color: -2, Without: without.Sum64()}
		if id.Creates {
			name.Color = -3
		}
		m.data.Sub(name, group, func(c transport.Comm, _ error) {
			if child := m.run.teamOf(m.team, id, ranks, name).enter(own, c, m); child != nil {
				m.children = append(m.children, child)
			}
		})
	}
}

// send sends a message that says where it belongs.
func (m *member) send() {
	to := m.rng.IntN(len(m.ranks))
	if m.left || m.revoked > 0 {
		return
	}
	m.sent[to]++
	b := binary.LittleEndian.AppendUint64(nil, uint64(m.epoch))
	b = binary.LittleEndian.AppendUint64(b, m.sent[to])
	m.data.Isend(&transport.Request{Buf: b, Peer: to, Epoch: m.epoch, Done: completed(func(r *transport.Request) {
		if _, died := errors.AsType[*transport.DeadError](r.Err); died && m.mit != nil {
			m.mit.Died(to) // the channel may not know yet
		}
	})})
}
