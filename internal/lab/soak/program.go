package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// times calls f as often as expected, on average.
func (m *member) times(expected float64, f func()) {
	for ; m.rng.Float64() < expected; expected-- {
		m.after(m.span, f)
	}
}

// begin draws what the program does, except agreements.
func (m *member) begin() {
	m.listen()
	if m.left {
		m.ulfm.Leave()
		return
	}
	if m.original && m.generation < 2 {
		for _, k := range m.kinds {
			m.split(k)
		}
	}
	m.work()
	m.times(m.raises, func() { m.raise(m.rng.IntN(12) == 0, false) })
	m.times(m.plan.revokes, m.revoke)
	m.times(m.leaves, m.quit)
	for range m.traffic {
		m.after(m.span+m.think, m.send)
	}
}

// raise raises an error. An error raised before the rank joins the round is in that round's
// verdict, at the latest; any other is in the next one, at the latest (P2, P5).
func (m *member) raise(corrupt, leaving bool) (raised bool) {
	if m.left && !leaving || m.unwound {
		return false
	}
	latest := len(m.verdicts)
	if n := len(m.reports); m.unresolved() > 0 {
		latest = max(latest, m.reports[n-1])
	}
	if m.joined || m.isJoining() || m.unresolved() > 0 { // an open report makes it join the next round, if not this one
		latest++
	}
	r := &ledger.Raised{Data: label(m.rank, len(m.reports)+1), Corrupt: corrupt, Leaving: leaving}
	m.feed(func() {
		if m.Comm.Raise(r) != nil {
			m.reports = append(m.reports, latest)
			m.unwound, raised = corrupt, true
			m.note("raises", len(m.reports), corrupt)
		}
	})
	return raised
}

// label is the data of a rank's k-th report.
func label(rank, k int) []byte { return fmt.Appendf(nil, "%d.%d", rank, k) }

func (m *member) revoke() {
	if !m.left && !m.IsRevoked() {
		m.note("revokes")
		m.revoked(m.rank)
		m.ulfm.Revoke()
	}
}

// quit ends the program of the process, perhaps by an error.
func (m *member) quit() {
	if m.left {
		return
	}
	m.note("leaves")
	m.left = true
	if m.rng.IntN(3) == 0 {
		m.raise(true, true)
	}
	m.leave()
}

// work begins the agreements of an epoch.
func (m *member) work() {
	if m.ulfm != nil && !m.left && m.dups && m.depth < 2 && !m.IsRevoked() {
		id := m.ulfm.Reserve(m.epoch, errchan.Dup)
		m.after(m.think, func() { m.propose(id, func() {}) })
	}
	switch {
	case m.ulfm == nil || m.left || m.calls == 0:
	case m.rng.Float64() < m.early:
		for range m.calls {
			id := m.ulfm.Reserve(m.epoch, 0)
			m.after(m.think, func() { m.propose(id, func() {}) })
		}
	default:
		m.next()
	}
}

// next begins the next agreement of a program that waits for each one.
func (m *member) next() {
	if m.left {
		return
	}
	id := m.ulfm.Reserve(m.epoch, 0)
	m.after(m.think, func() {
		m.propose(id, func() {
			if id.Seq+1 < uint64(m.calls) {
				m.next()
			}
		})
	})
}

// isShrink reports whether an agreement is a Shrink.
func (t *team) isShrink(id errchan.Agreement) bool {
	return !id.Creates && int(id.Seq) == t.shrink && t.depth < 2
}

func (m *member) propose(id errchan.Agreement, then func()) {
	if m.left {
		return
	}
	p := errchan.Proposal{Flag: -1}
	if !m.isShrink(id) && !id.Creates {
		p.Flag = ^(1 << (m.rank % 62))
		m.Ack(m.rng.IntN(len(m.Failed()) + 1))
		p.Acked = m.Acknowledged()
	} else if m.isShrink(id) && m.Broken() {
		p.Flag = 0 // see Shrink of package mpicx
	}
	m.note("proposes", id, m.open)
	late := id.Epoch != m.epoch
	if !late && !(id.Creates && m.IsRevoked()) {
		m.proposals[id] = append(m.proposals[id], proposal{m, p, m.Failed()})
	}
	m.pending++
	ended := false
	m.ulfm.Propose(id, p, func(d *errchan.Decision, err error) {
		if m.dead() {
			return
		}
		m.pending--
		over := id.Epoch != m.epoch || id.Creates && m.IsRevoked()
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
		return // a program that has ended is told nothing, and the decision need not be the others'
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
	under := m
	if d.Flag != -1 && m.over != nil { // the member itself can have no more errors
		under = m.over
	}
	name := transport.Name{Epoch: id.Epoch, Seq: id.Seq, Without: without.Sum64()}
	if !id.Creates {
		name = transport.ShrinkName(id.Epoch, id.Seq, name.Without)
	}
	m.derive(under, id, name, group, ranks)
}

// derive makes this rank's side of a team.
func (m *member) derive(under *member, id errchan.Agreement, name transport.Name, group, ranks []int) {
	own := slices.Index(group, m.rank)
	if own < 0 {
		return
	}
	name.Generation = under.generation + 1
	c, err := m.data.Sub(name, group)
	if err != nil { // the rank is dead
		return
	}
	enter := func() { m.run.teamOf(m.team, under.team, id, ranks, name).enter(own, c, m, under) }
	if name.Color <= 0 && m.rng.IntN(4) == 0 { // making it takes a while, and an error may come first
		m.after(m.think, enter)
	} else {
		enter()
	}
}

// A kind is a way to split a team into parts at the beginning.
type kind int

const (
	whole  kind = iota // like Dup
	parity             // even and odd ranks
	halves
	kinds
)

func (k kind) part(rank, size int) int {
	return [...]int{0, rank % 2, 2 * rank / size}[k]
}

func (m *member) split(k kind) {
	var group, ranks []int
	for r := range m.ranks {
		if k.part(r, len(m.ranks)) == k.part(m.rank, len(m.ranks)) {
			group, ranks = append(group, r), append(ranks, m.ranks[r])
		}
	}
	m.derive(m, errchan.Agreement{}, transport.SplitName(0, uint64(k), k.part(m.rank, len(m.ranks))), group, ranks)
}

// send sends a message that contains its epoch and its number.
func (m *member) send() {
	to := m.rng.IntN(len(m.ranks))
	if m.left || m.IsRevoked() {
		return
	}
	m.sent[to]++
	b := binary.LittleEndian.AppendUint64(nil, uint64(m.epoch))
	b = binary.LittleEndian.AppendUint64(b, m.sent[to])
	m.data.Isend(&transport.Request{Buf: b, Peer: to, Epoch: m.epoch, Done: completed(func(r *transport.Request) {
		if _, died := errors.AsType[*transport.DeadError](r.Err); died && m.ulfm != nil {
			m.ulfm.Died(to) // the channel may not know it yet
		}
	})})
}
