package main

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/ulfmbackend"
)

// A member is one rank in a team: its program, and package mpicx below that, as
// far as the error channel sees them.
type member struct {
	*team
	*process
	rank, world int
	data        transport.Comm
	epoch       transport.Epoch
	ch          errchan.Channel
	mit         errchan.Mitigator // nil: ch is a black channel
	over        *member           // of the team that it is derived from; nil: of none
	children    []*member         // derived from it: errors of this team move them too (D1)

	raised    int
	unwound   bool // one of those was corrupt: it joins every round at once
	departed  bool // and was Unwind's: the verdict has this rank among the dead
	open      bool // a round is
	joined    bool // it, or one that is to be noticed because of a report of this rank
	consented bool // to its end
	knew      int  // so many of told, then
	verdicts  []*errchan.Verdict
	final     bool
	lost      bool
	revoked   int

	told    []int // who has died, by the channel
	failed  []int // likewise, or by decisions: what mpicx calls Failed
	acked   int   // so many of those
	pending int   // proposals
	decided []decided

	recv      transport.Request
	buf       [16]byte
	sent, got map[int]uint64 // in this epoch, to and from a rank
}

// A proposal is what a member contributed to an agreement.
type proposal struct {
	by *member
	errchan.Proposal
	knew int // so many of failed
}

type decided struct {
	id errchan.Agreement
	*errchan.Decision
}

var (
	_      errchan.Survivor = (*member)(nil)
	errNew                  = errors.New("a new epoch")
)

// enter has a rank of the team take part in it; over is its side of what that is derived from.
func (t *team) enter(rank int, c transport.Comm, over *member) *member {
	world := t.ranks[rank]
	m := &member{team: t, process: &t.processes[world], rank: rank, world: world, data: c, epoch: c.Epoch(), over: over,
		sent: make(map[int]uint64), got: make(map[int]uint64)}
	if c.Size() != len(t.ranks) || c.Rank() != rank {
		t.fail("H5: after Shrink %v rank %d is %d of %d, expected %d of %v", t.id, world, c.Rank(), c.Size(), rank, t.ranks)
		return nil
	}
	t.members[rank] = m
	m.sides = append(m.sides, m)
	c.Sub(transport.Name{Color: -1}, nil, func(dup transport.Comm, _ error) {
		dup = &mortal{dup, t.run, world, m.process}
		if !t.ulfm {
			ch := blackchannel.New(dup, 0, nil, m)
			m.ch = ch
			m.begin()
			ch.Listen()
			return
		}
		ch := ulfmbackend.New(dup, t.name, m.epoch, m)
		m.ch, m.mit = ch, ch
		if m.isFrozen() {
			m.mit.Freeze()
		}
		m.begin() // before what has come already may end the epoch
		ch.Listen()
	})
	return m
}

// A mortal carries the messages of an error channel of a rank that may die in the
// middle of sending them.
type mortal struct {
	transport.Comm
	*run
	world int
	*process
}

func (c *mortal) Listen(l transport.Listener) { c.Comm.Listen(&mortalListener{l, c}) }

type mortalListener struct {
	transport.Listener
	*mortal
}

func (l *mortalListener) Next() (to int, payload []byte, ok bool) {
	to, payload, ok = l.Listener.Next()
	if ok && l.sends > 0 {
		if l.sends--; l.sends == 0 {
			l.w.Kill(l.world)
		}
	}
	if ok && l.lossy != nil && l.lossy(payload) {
		return l.Next()
	}
	return to, payload, ok
}

// dead says whether the process is: then there is nobody to be told.
func (m *member) dead() bool { return m.w.Dead(m.world) }

// consent notes what this rank knows when it joins the open round.
func (m *member) consent() {
	if m.open && !m.consented {
		m.consented, m.knew = true, len(m.told)
	}
}

// freeze has nothing decided on the team and those derived from it, whose round this rank
// is about to join, and returns what was.
func (m *member) freeze() []errchan.Settled {
	m.joined = true
	settled := []errchan.Settled{}
	for _, child := range append([]*member{m}, m.descendants()...) {
		if child.mit != nil {
			settled = append(settled, child.mit.Freeze()...)
		}
	}
	return settled
}

func (m *member) descendants() (all []*member) {
	for _, child := range m.children {
		all = append(append(all, child), child.descendants()...)
	}
	return all
}

// isFrozen says whether a round of the team, or of one that it is derived from, is open
// that this rank has joined.
func (m *member) isFrozen() bool { return m.joined || m.over != nil && m.over.isFrozen() }

// join joins a round, if it is still open.
func (m *member) join(round uint64) {
	if m.open && round == uint64(len(m.verdicts)) {
		m.consent()
		m.ch.Join(round, m.freeze())
	}
}

// Noticed has the program join, at once or some time, or raise an error first.
func (m *member) Noticed(round uint64, by int, corrupt bool) {
	if m.dead() {
		return
	}
	m.note("notices round", round, by, corrupt)
	if m.open || round != uint64(len(m.verdicts)) || m.final {
		m.fail("P1: rank %d is told of round %d by %d after %d verdicts, open %t, final %t", m.world, round, by, len(m.verdicts), m.open, m.final)
	}
	m.open = true
	join := func() { m.join(round) }
	switch {
	case m.left || m.unwound || m.outstanding() || m.rng.IntN(4) == 0:
		join()
	default:
		m.after(m.think, func() {
			if m.raises > 0 && m.rng.IntN(8) == 0 {
				m.raise(false)
			}
			join()
		})
	}
}

// Resolved moves the member, and those derived from it, to the next epoch.
func (m *member) Resolved(v *errchan.Verdict) {
	if m.dead() {
		return
	}
	m.note("gets verdict", v.Round, v.Corrupt, len(v.Reports), v.Dead)
	switch {
	case v.Round != uint64(len(m.verdicts)) || m.final:
		m.fail("P1: rank %d gets the verdict of round %d after %d verdicts, final %t", m.world, v.Round, len(m.verdicts), m.final)
	case m.left: // nobody waits for it, or for what it knows
		m.knew = 0
	case !m.open || !m.consented:
		m.fail("P1: rank %d gets the verdict of round %d, open %t, but has not joined it", m.world, v.Round, m.open)
	}
	for _, r := range m.told[:m.knew] {
		if !slices.Contains(v.Dead, r) {
			m.fail("H2: rank %d joined round %d after it had been told that %d is dead, but the dead are %v", m.world, v.Round, r, v.Dead)
		}
	}
	m.verdicts = append(m.verdicts, v)
	m.open, m.joined, m.consented, m.knew, m.final = false, false, false, 0, v.Corrupt
	if m.mit != nil {
		for _, other := range append(m.descendants(), m) {
			other.mit.Complete(v.Settled)
		}
	}
	m.advance(m.generation)
}

func (m *member) advance(generation int) {
	if m.dead() { // in the middle of it
		return
	}
	m.epoch = m.epoch.Next(generation)
	if m.mit != nil {
		m.mit.Advance(generation, errNew, m.isFrozen())
	}
	if m.pending > 0 && !m.isFrozen() && !m.dead() {
		m.fail("H5: rank %d is in epoch %x, and %d proposals have not ended", m.world, m.epoch, m.pending)
	}
	clear(m.sent)
	clear(m.got)
	m.data.Advance(generation, errNew)
	m.listen()
	m.work()
	for _, child := range m.children {
		child.advance(generation)
	}
}

// Died notes a death, and may have all be told that this rank needs the dead.
func (m *member) Died(rank int) {
	if m.dead() {
		return
	}
	m.note("is told of the death of", rank)
	if slices.Contains(m.told, rank) {
		m.fail("H1: rank %d is told twice that %d of its team is dead", m.world, rank)
	}
	m.told = append(m.told, rank)
	m.learn(rank)
	if m.rng.Float64() < m.needs {
		m.after(m.think, func() {
			if !m.final && !m.left && m.revoked == 0 {
				m.note("needs the dead")
				m.lost = true
				m.mit.Lose(sortedCopy(m.told))
			}
		})
	}
}

func (m *member) learn(rank int) {
	if m.lives(rank) && !m.isGone(rank) {
		m.fail("H1: rank %d is told that %d of its team is dead, which lives", m.world, rank)
	}
	if !slices.Contains(m.failed, rank) {
		m.failed = append(m.failed, rank)
	}
}

func (t *team) lives(rank int) bool { return !t.w.Dead(t.ranks[rank]) }

// isGone says whether the program of a rank has ended.
func (t *team) isGone(rank int) bool { return t.processes[t.ranks[rank]].left }

// Revoked ends the member's messages.
func (m *member) Revoked(by int) {
	if m.dead() {
		return
	}
	m.note("is told of a revoke by", by)
	if m.revoked++; m.revoked > 1 {
		m.fail("H4: rank %d is told of a revoke %d times", m.world, m.revoked)
	}
	m.data.Revoke(errNew)
	if m.mit != nil {
		m.mit.Abandon(errNew)
	}
}

type completed func(*transport.Request)

func (f completed) Completed(r *transport.Request) { f(r) }

func (m *member) listen() {
	if m.revoked == 0 {
		m.recv = transport.Request{Buf: m.buf[:], Peer: transport.AnySource, Epoch: m.epoch, Done: m}
		m.data.Irecv(&m.recv)
	}
}

// Completed checks a message that has come: none of another epoch, none twice,
// none before its turn.
func (m *member) Completed(r *transport.Request) {
	if r.Err != nil {
		return // the epoch is over
	}
	from := r.Status.Source
	m.got[from]++
	e, k := transport.Epoch(binary.LittleEndian.Uint64(m.buf[:])), binary.LittleEndian.Uint64(m.buf[8:])
	if e != m.epoch || k != m.got[from] {
		m.fail("P3: rank %d in epoch %x gets message %d of epoch %x from %d, expected number %d", m.world, m.epoch, k, e, from, m.got[from])
	}
	m.listen()
}

func sortedCopy(s []int) []int { return slices.Sorted(slices.Values(s)) }
