package main

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/mpicx/go-mpicx/blackchannel"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/ulfmbackend"
)

// A member is one rank in a team: what package mpicx calls a Comm, with the checks of
// what its error channel tells.
type member struct {
	*team
	*process
	ledger.Comm
	rank          int
	data          transport.Comm
	epoch         transport.Epoch
	ch            errchan.Channel
	ulfm          errchan.ULFM // nil: ch is a black channel
	listenChannel func()
	over          *member // of the team that it is derived from; nil: of none

	everywhere bool
	reports    []int // the last verdict that each of those raised may be in
	unwound    bool  // one of those was corrupt
	open       bool  // a round is, by the channel
	fatal      bool  // and its verdict will be final
	joined     bool  // and this rank has joined it
	knew       int   // so many of told, then
	verdicts   []*errchan.Verdict
	heard      []*heard // the same, as the program gets them
	final      bool
	moved      int       // so many verdicts have moved it
	spared     []*member // those above whose corruption came before it was made
	lost       bool
	revokes    int
	released   bool

	opened bool // a round is, by the ledger's events
	untold int  // verdicts, likewise

	told    []int // who has died, by the channel
	pending int   // proposals
	unsure  bool  // a verdict to come may end them
	decided []decided

	recv      transport.Request
	buf       [16]byte
	sent, got map[int]uint64 // in this epoch, to and from a rank
}

// A proposal is what a member contributed to an agreement.
type proposal struct {
	by *member
	errchan.Proposal
	knew []int // who has died
}

type decided struct {
	id errchan.Agreement
	*errchan.Decision
}

var (
	_      errchan.ULFMClient = (*member)(nil)
	errNew                    = errors.New("a new epoch")
)

// enter has a rank of the team take part in it. From is its side of what the team was made
// from, and over of what it is derived from.
func (t *team) enter(rank int, c transport.Comm, from, over *member) {
	p := t.processes[t.ranks[rank]]
	m := &member{team: t, process: p, rank: rank, data: c, epoch: c.Epoch(), over: over,
		sent: make(map[int]uint64), got: make(map[int]uint64)}
	if c.Size() != len(t.ranks) || c.Rank() != rank {
		t.fail("H5: after Shrink %v rank %d is %d of %d, expected %d of %v", t.id, m.world, c.Rank(), c.Size(), rank, t.ranks)
		return
	}
	t.members[rank] = m
	p.sides = append(p.sides, m)
	if dup, err := c.Sub(transport.ErrorChannelName(), nil); err == nil { // else it is dead
		m.listenTo(&mortal{dup, t.run, p})
	}
	for a := over; a != nil; a = a.over {
		if a.final && a.moved == len(a.verdicts) && m.epoch.Missing(a.epoch, a.generation) == 0 {
			m.spared = append(m.spared, a)
		}
	}
	m.Owner = m
	// What an agreement makes, ranks that have joined a round get only with its verdict.
	if m.everywhere = t.original && m.rng.IntN(4) > 0; m.everywhere {
		m.Everywhere()
	}
	var of, under *ledger.Comm
	if from != nil {
		of, under = &from.Comm, &over.Comm
	}
	p.feed(func() {
		if !p.ledger.Make(&m.Comm, of, under, m.epoch, true, t.ranks) {
			t.fail("H5: rank %d makes its side after %v, which all make, and it is closed", m.world, t.id)
		}
	})
}

// listenTo gives the member its error channel.
func (m *member) listenTo(dup transport.Messenger) {
	if m.team.ulfm {
		ch := ulfmbackend.New(dup, m.team.name, m.epoch, m)
		m.ch, m.ulfm, m.listenChannel = ch, ch, ch.Listen
		return
	}
	var parent *blackchannel.Channel
	if m.over != nil && len(m.team.ranks) == len(m.over.team.ranks) {
		parent = m.over.ch.(*blackchannel.Channel)
	}
	ch := blackchannel.New(dup, m.team.name, parent, m)
	m.ch, m.listenChannel = ch, ch.Listen
}

// A mortal carries the messages of an error channel of a rank that may die in the
// middle of sending them.
type mortal struct {
	transport.Messenger
	*run
	*process
}

func (c *mortal) Listen(l transport.Listener) { c.Messenger.Listen(&mortalListener{l, c}) }

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

// Noticed has the program raise an error some time, perhaps.
func (m *member) Noticed(round uint64, by int, corrupt bool) {
	if m.dead() {
		return
	}
	m.note("notices round", round, by, corrupt)
	again := m.open && !m.fatal && corrupt
	if m.open && !again || round != uint64(len(m.verdicts)) || m.final {
		m.fail("P1: rank %d is told of round %d by %d, corrupt %t, after %d verdicts, open %t, corrupt %t, final %t",
			m.world, round, by, corrupt, len(m.verdicts), m.open, m.fatal, m.final)
	}
	m.open, m.fatal = true, corrupt
	m.feed(func() { m.Comm.Noticed(round, by, corrupt) })
	if !again {
		m.reply()
	}
}

// reply has the program raise an error because of another, perhaps.
func (m *member) reply() {
	if m.replies > 0 && m.rng.IntN(4) == 0 {
		m.replies--
		m.after(m.think, func() { m.raise(false, false) })
	}
}

// Resolved checks a verdict, and has the ledger move the family to the next epoch.
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
	case !m.open || !m.joined:
		m.fail("P1: rank %d gets the verdict of round %d, open %t, but has not joined it", m.world, v.Round, m.open)
	}
	for _, r := range m.told[:m.knew] {
		if !slices.Contains(v.Dead, r) {
			m.fail("H2: rank %d joined round %d after it had been told that %d is dead, but the dead are %v", m.world, v.Round, r, v.Dead)
		}
	}
	m.verdicts = append(m.verdicts, v)
	m.open, m.fatal, m.joined, m.knew, m.final = false, false, false, 0, v.Corrupt
	m.feed(func() { m.Comm.Resolved(v, m.rank) })
}

// unresolved counts the errors of this rank that no verdict has.
func (m *member) unresolved() int {
	n := len(m.reports)
	for _, v := range m.verdicts {
		n -= reportsOf(v, m.rank)
	}
	return n
}

// advance moves the member to its next epoch.
func (m *member) advance(generation int, frozen, lost bool) {
	if m.dead() { // in the middle of it
		return
	}
	m.epoch = m.epoch.Next(generation)
	if generation == m.generation {
		m.moved++
	}
	m.unsure = frozen && (lost || m.unsure)
	if m.ulfm != nil {
		m.ulfm.Advance(generation, errNew, frozen, lost)
	}
	if m.pending > 0 && !m.unsure && !m.dead() {
		m.fail("H5: rank %d is in epoch %x, and %d proposals have not ended", m.world, m.epoch, m.pending)
	}
	clear(m.sent)
	clear(m.got)
	m.data.Advance(generation, errNew)
	m.listen()
	m.work()
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
			if !m.left && !m.Broken() {
				m.note("needs the dead")
				m.lost = true
				m.feed(m.Lose)
			}
		})
	}
}

func (m *member) learn(rank int) {
	if m.lives(rank) && !m.isGone(rank) {
		m.fail("H1: rank %d is told that %d of its team is dead, which lives", m.world, rank)
	}
	m.feed(func() { m.Comm.Died(rank) })
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
	if m.revokes++; m.revokes > 1 {
		m.fail("H4: rank %d is told of a revoke %d times", m.world, m.revokes)
	}
	m.revoked(by)
}

func (m *member) revoked(by int) {
	first := false
	m.feed(func() { first = m.Comm.Revoked(by) })
	if first {
		m.data.Revoke(errNew)
		m.ulfm.Abandon(errNew)
		m.feed(m.RevokeDone)
	}
}

type completed func(*transport.Request)

func (f completed) Completed(r *transport.Request) { f(r) }

func (m *member) listen() {
	if !m.IsRevoked() {
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
