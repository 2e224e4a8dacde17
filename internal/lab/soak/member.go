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

// A member is one rank in a team, like a Comm of package mpicx, with checks of what its error
// channel reports.
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
	over          *member // its member of the team that this one is derived from; nil: none

	everywhere bool
	reports    []int // by report of this rank: the latest verdict that may contain it
	unwound    bool  // one of the reports was corrupt
	open       bool  // a round is open, according to the channel
	fatal      bool  // the round's verdict will be final
	joined     bool  // this rank has joined the round
	knew       int   // the length of told at that time
	verdicts   []*errchan.Verdict
	heard      []*heard // the verdicts as the program gets them
	final      bool
	moved      int       // how many verdicts have moved it
	spared     []*member // members above it that were corrupted before it was made
	lost       bool
	revokes    int
	released   bool

	opened bool // a round is open, according to the ledger's events
	untold int  // number of untold verdicts, according to the ledger's events

	told    []int // the dead that the channel has reported
	pending int   // number of proposals
	unsure  bool  // a coming verdict may end the proposals
	decided []decided

	recv      transport.Request
	buf       [16]byte
	sent, got map[int]uint64 // in this epoch, by the other rank
}

// A proposal is what a member contributed to an agreement.
type proposal struct {
	by *member
	errchan.Proposal
	knew []int // the dead that it knew of
}

type decided struct {
	id errchan.Agreement
	*errchan.Decision
}

var (
	_      errchan.ULFMClient = (*member)(nil)
	errNew                    = errors.New("a new epoch")
)

// enter makes a rank's member of the team. From is the rank's member of the team that this one was
// made from, over that of the team that it is derived from.
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
	if dup, err := c.Sub(transport.ErrorChannelName(), nil); err == nil { // an error means that the rank is dead
		m.listenTo(&mortal{dup, t.run, p})
	}
	for a := over; a != nil; a = a.over {
		if a.final && a.moved == len(a.verdicts) && m.epoch.Missing(a.epoch, a.generation) == 0 {
			m.spared = append(m.spared, a)
		}
	}
	m.Owner = m
	// Ranks that have joined a round get the result of an agreement only with the round's verdict.
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

// A mortal carries the error channel's messages of a rank that may die in the middle of sending
// them.
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

// Noticed may make the program raise an error later.
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

// reply may make the program raise an error in answer to another one.
func (m *member) reply() {
	if m.replies > 0 && m.rng.IntN(4) == 0 {
		m.replies--
		m.after(m.think, func() { m.raise(false, false) })
	}
}

// Resolved checks a verdict and passes it to the ledger, which moves the family to the next epoch.
func (m *member) Asked([]byte) {}

func (m *member) Resolved(v *errchan.Verdict) {
	if m.dead() {
		return
	}
	m.note("gets verdict", v.Round, v.Corrupt, len(v.Reports), v.Dead)
	switch {
	case v.Round != uint64(len(m.verdicts)) || m.final:
		m.fail("P1: rank %d gets the verdict of round %d after %d verdicts, final %t", m.world, v.Round, len(m.verdicts), m.final)
	case m.left: // the program waits for nothing, and needs no verdict about the dead
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

// unresolved counts this rank's reports that are in no verdict yet.
func (m *member) unresolved() int {
	n := len(m.reports)
	for _, v := range m.verdicts {
		n -= reportsOf(v, m.rank)
	}
	return n
}

// advance moves the member to its next epoch.
func (m *member) advance(generation int, frozen, lost bool) {
	if m.dead() { // it died in the middle of moving
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

// Died notes a death, and may raise that this rank needs the dead one.
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

// isGone reports whether a rank's program has ended.
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
		m.data.Quiesce(func() { m.feed(m.RevokeDone) })
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

// Completed checks a message that has arrived: it is of this epoch, comes once, and in order.
func (m *member) Completed(r *transport.Request) {
	if r.Err != nil {
		return // the epoch has ended
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
