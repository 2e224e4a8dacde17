package ulfmbackend

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/wire"
)

// A universe is one state of a few ranks: their machines, the messages under way,
// and the events that their programs have seen. From each state every next event is tried:
// the first message of any channel arrives, or any rank dies, learns of a death, or takes the
// next step of its program. The messages from a dead rank to another may be lost at any time.
// States that were seen before are left out.
type universe struct {
	machines []*Machine
	wires    map[[2]int][]*Message // from, to
	dead     uint
	deaths   int // that may still happen
	programs []program
	parent   parent
	library  *library                         // nil: the protocols are our own
	trace    func(format string, args ...any) // of scripts; nil: silent
}

// parent is the communicator that the universe's is derived from, as far as it matters:
// it may have one error, whose verdict is uniform. The round takes what each rank knows
// when it joins; of a dead one it may or may not take it.
type parent struct {
	errs    bool // it has an error
	joined  uint
	reports [][]errchan.Settled
	decided bool
	settled []errchan.Settled
	lost    bool // the verdict has not what all had said
	told    uint
}

// program is the behaviour of a rank, and its observations.
type program struct {
	calls   int  // agreements it wants; it calls again when an error ends one
	creates bool // a communicator; likewise
	flag    int
	noticed bool
	fatal   bool // a corruption, in the open round
	raises  int
	unwinds bool // by the last of these
	waits   bool // for the end of the context of a Guard: it joins nothing before
	prompt  bool // it joins as soon as it is told
	again   int  // so many second notices of a round
	revokes bool
	needs   bool // the first dead that it learns of
	leaves  bool // instead of its last agreement
	left    bool
	joined  bool // a round that is open

	closes   bool // once it has done everything else
	closed   bool
	released bool // its side is gone

	epoch    transport.Epoch
	proposed []errchan.Agreement // that it waits for
	ended    []errchan.Agreement // by an error
	created  map[errchan.Agreement]errchan.Decision
	agreed   []errchan.Decision
	verdicts []*errchan.Verdict
	revoked  int
	died     []int
}

func (u *universe) clone() *universe {
	v := &universe{dead: u.dead, deaths: u.deaths, wires: maps.Clone(u.wires), programs: slices.Clone(u.programs), parent: u.parent}
	v.parent.reports = slices.Clone(u.parent.reports)
	for _, m := range u.machines {
		v.machines = append(v.machines, m.clone())
	}
	for i := range v.programs {
		p := &v.programs[i]
		p.agreed, p.verdicts, p.died = slices.Clone(p.agreed), slices.Clone(p.verdicts), slices.Clone(p.died)
		p.proposed, p.ended, p.created = slices.Clone(p.proposed), slices.Clone(p.ended), maps.Clone(p.created)
	}
	return v
}

func (m *Machine) clone() *Machine {
	c := *m
	c.mine, c.reported, c.later = slices.Clone(m.mine), slices.Clone(m.reported), slices.Clone(m.later)
	c.proposed, c.past.epochs = maps.Clone(m.proposed), slices.Clone(m.past.epochs)
	c.out = errchan.Queue[Output]{}
	return &c
}

func (u *universe) alive(r int) bool { return u.dead&(1<<r) == 0 }

// key identifies the state.
func (u *universe) key() [sha256.Size]byte {
	b := make([]byte, 0, 1024)
	number := func(vs ...int) {
		for _, v := range vs {
			b = binary.AppendVarint(b, int64(v))
		}
	}
	list := func(vs []int) { number(append([]int{len(vs)}, vs...)...) }
	flags := func(vs ...bool) {
		for _, v := range vs {
			b = wire.AppendBool(b, v)
		}
	}
	for r, m := range u.machines {
		flags(u.alive(r))
		if u.alive(r) {
			for k, s := range m.streams {
				flags(s.joined, s.sent, s.last != nil)
				list(sorted(s.heard.more))
				number(int(s.heard.bits))
				b = append(b, Encode(&Message{Kind: Up, Stream: Stream(k), ID: s.id, Value: &s.value})...)
				if s.last != nil {
					b = append(b, Encode(&Message{Kind: Up, Value: s.last.Value})...)
					number(s.last.Origin)
				}
				b = errchan.AppendReports(b, s.late)
			}
			for _, past := range m.past.epochs {
				number(int(past.epoch))
				list(past.since)
				b = appendSettled(b, past.settled)
			}
			for _, id := range m.open {
				number(int(id.Epoch), int(streamOf(id)), int(id.Seq))
			}
			list(m.gone)
			flags(m.frozen, m.abandoned)
			number(len(m.later))
			list(m.dead)
			list(m.missed)
			flags(m.released)
			flags(m.notices.open, m.notices.corrupt(), m.early.open, m.early.corrupt(), m.revokes.open, m.left, m.final)
			number(int(m.notices.fatal), int(m.early.told), int(m.early.fatal))
			number(len(m.mine))
		}
		p := u.programs[r]
		number(p.again)
		flags(p.noticed, p.fatal, p.waits, p.revokes, p.needs, p.left, p.joined, p.creates, p.closed, p.released)
		number(p.calls, p.raises, p.revoked, len(p.agreed), len(p.verdicts))
		for _, ids := range [][]errchan.Agreement{p.proposed, p.ended, slices.SortedFunc(maps.Keys(p.created), compareAgreements)} {
			number(len(ids))
			for _, id := range ids {
				number(int(id.Epoch), int(streamOf(id)), int(id.Seq), p.created[id].Flag)
			}
		}
		for _, d := range p.agreed {
			number(d.Flag)
			list(d.Dead)
			list(d.Unacked)
		}
		for _, v := range p.verdicts {
			b = errchan.AppendReports(b, v.Reports)
			list(v.Dead)
		}
		for to := range u.machines {
			number(len(u.wires[[2]int{r, to}]))
			for _, msg := range u.wires[[2]int{r, to}] {
				b = append(b, Encode(msg)...)
			}
		}
	}
	number(u.deaths, int(u.parent.joined), int(u.parent.told))
	flags(u.parent.errs, u.parent.decided, u.parent.lost)
	b = appendSettled(b, u.parent.settled)
	for _, s := range u.parent.reports {
		b = appendSettled(b, s)
	}
	return sha256.Sum256(b)
}

func sorted(s []int) []int {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// settle takes notices off the wires that change nothing where they arrive: they
// may as well arrive at once.
func (u *universe) settle() {
	for w, wire := range u.wires {
		m := u.machines[w[1]]
		for len(wire) > 0 {
			round := m.streams[Errors].id.Seq
			msg := wire[0]
			late := msg.Kind == Notice && (msg.ID.Seq < round || msg.ID.Seq == round && (!m.notices.isNews(msg.Corrupt) || m.final))
			if !late && (msg.Kind != Revoke || !m.revokes.open) {
				break
			}
			wire = wire[1:]
		}
		u.wires[w] = wire
	}
}

// feed gives something to rank r and carries out what its machine wants.
func (u *universe) feed(r int, f func(*Machine)) {
	m := u.machines[r]
	f(m)
	for {
		o, ok := m.Next()
		if !ok {
			return
		}
		p := &u.programs[r]
		switch {
		case o.Message != nil:
			msg, err := decodeShared(Encode(o.Message), m.size)
			if err != nil {
				panic(err)
			}
			u.tell("%d->%d %s\n", r, o.To, messageText(o.Message))
			if w := [2]int{r, o.To}; u.alive(o.To) && !u.programs[o.To].released {
				u.wires[w] = append(u.wires[w][:len(u.wires[w]):len(u.wires[w])], msg)
			}
		case o.Noticed != nil:
			u.tell("%d: noticed round %d from %d%s\n", r, o.Noticed.Round, o.Noticed.By, corruptText(o.Noticed.Corrupt))
			if p.noticed && (p.fatal || !o.Noticed.Corrupt) || o.Noticed.Round != uint64(len(p.verdicts)) {
				panic(fmt.Sprintf("rank %d is told of round %d after %d verdicts, corrupt %t, and was before: %t, corrupt %t",
					r, o.Noticed.Round, len(p.verdicts), o.Noticed.Corrupt, p.noticed, p.fatal))
			}
			if p.noticed {
				p.again++
			}
			p.noticed, p.fatal = true, o.Noticed.Corrupt
			p.waits = p.waits && !p.fatal
			if p.prompt && !p.waits && !p.joined {
				p.joined = true
				m.Join(m.Freeze())
			}
		case o.Resolved != nil:
			u.tell("%d: resolved %s\n", r, verdictText(o.Resolved))
			p.noticed, p.fatal, p.joined = false, false, false
			p.verdicts = append(p.verdicts, o.Resolved)
			m.Complete(o.Resolved.Settled)
			u.advance(r, 1, len(o.Resolved.Dead) > 0)
			m.Told()
		case o.Agreed != nil:
			u.end(r)
		case o.Revoked != nil:
			u.tell("%d: revoked by %d\n", r, o.Revoked.Rank)
			p.revoked++
		case o.Died != nil:
			u.tell("%d: %d has died\n", r, o.Died.Rank)
			p.died = append(p.died, o.Died.Rank)
		case o.Revoke:
			u.library.revoked = true
		case o.Vote != nil:
			u.library.vote(r, o.Vote)
		case o.Released:
			u.tell("%d: released\n", r)
			p.released = true
			maps.DeleteFunc(u.wires, func(w [2]int, _ []*Message) bool { return w[1] == r })
		}
	}
}

func (u *universe) tell(format string, args ...any) {
	if u.trace != nil {
		u.trace(format, args...)
	}
}

// advance has rank r's machine begin an epoch, as package mpicx does.
func (u *universe) advance(r, generation int, lost bool) {
	m, p := u.machines[r], &u.programs[r]
	u.end(r)
	p.epoch = p.epoch.Next(generation)
	m.Advance(generation, p.epoch, p.joined || (u.parent.joined&^u.parent.told)&(1<<r) != 0, lost)
	u.end(r)
}

// end tells rank r's program what its agreements came to.
func (u *universe) end(r int) {
	m, p := u.machines[r], &u.programs[r]
	p.proposed = slices.DeleteFunc(slices.Clone(p.proposed), func(id errchan.Agreement) bool {
		switch d, _ := m.End(id); {
		case d != nil:
			u.tell("%d: %s decided: %v\n", r, agreementText(id), d)
			if !id.Creates {
				p.agreed = append(p.agreed, *d)
				break
			}
			p.created[id] = *d
		case id.Epoch == p.epoch || m.IsOpen(id):
			return false
		default:
			u.tell("%d: %s ended by an error\n", r, agreementText(id))
			p.ended = append(p.ended, id)
		}
		return true
	})
}

// propose has rank r's program call for an agreement.
func (u *universe) propose(r int, k Stream) {
	p := &u.programs[r]
	u.feed(r, func(m *Machine) {
		id := m.streams[k].id
		p.proposed = append(p.proposed, id)
		m.Propose(id, Value{Flag: p.flag})
	})
}

// parentEvents visits what may come next in the parent.
func (u *universe) parentEvents(visit func(string, func(*universe))) {
	if !u.parent.errs {
		return
	}
	all := true
	var gone []int // the ranks that died, and may have joined before that
	for r := range u.machines {
		bit := uint(1) << r
		switch joined := u.parent.joined&bit != 0; {
		case joined && !u.alive(r):
			gone = append(gone, r)
		case !joined && u.alive(r):
			all = false
			visit(fmt.Sprintf("%d joins the parent's round", r), func(u *universe) {
				u.parent.joined |= bit
				u.parent.reports[r] = u.machines[r].Freeze()
			})
		case u.parent.decided && u.alive(r) && u.parent.told&bit == 0:
			visit(fmt.Sprintf("%d gets the parent's verdict", r), func(u *universe) {
				u.parent.told |= bit
				u.feed(r, func(m *Machine) {
					m.Complete(u.parent.settled)
					u.advance(r, 0, u.parent.lost)
				})
			})
		}
	}
	if !all || u.parent.decided {
		return
	}
	for lost := range 1 << len(gone) {
		visit(fmt.Sprintf("the parent's verdict is made, without %b of the dead %v", lost, gone), func(u *universe) {
			u.parent.decided = true
			for r := range u.machines {
				if i := slices.Index(gone, r); u.parent.joined&(1<<r) == 0 || i >= 0 && lost&(1<<i) != 0 {
					u.parent.lost = true
				} else {
					u.parent.settled = merge(u.parent.settled, u.parent.reports[r], compareSettled, prefer)
				}
			}
		})
	}
}

// events calls visit with each state that may come next, and says what happened.
func (u *universe) events(visit func(string, func(*universe))) {
	n := len(u.machines)
	u.parentEvents(visit)
	u.libraryEvents(visit)
	for r := range n {
		if !u.alive(r) {
			continue
		}
		p := u.programs[r]
		if p.leaves && !p.left && len(p.agreed) == p.calls-1 {
			visit(fmt.Sprintf("%d leaves", r), func(u *universe) {
				u.programs[r].left = true
				u.feed(r, (*Machine).Leave)
			})
			continue
		}
		if p.needs && len(p.died) > 0 {
			visit(fmt.Sprintf("%d needs a dead rank", r), func(u *universe) {
				u.programs[r].needs = false
				u.feed(r, func(m *Machine) { m.Lose(sorted(p.died)) })
			})
		}
		if len(p.agreed) < p.calls && !p.left && !slices.ContainsFunc(p.proposed, func(id errchan.Agreement) bool { return !id.Creates }) {
			visit(fmt.Sprintf("%d proposes", r), func(u *universe) { u.propose(r, Repairs) })
		}
		if p.creates && !p.left && len(p.created) == 0 && !slices.ContainsFunc(p.proposed, func(id errchan.Agreement) bool { return id.Creates }) {
			visit(fmt.Sprintf("%d proposes a communicator", r), func(u *universe) { u.propose(r, Creations) })
		}
		if p.raises > 0 {
			visit(fmt.Sprintf("%d raises", r), func(u *universe) {
				u.programs[r].raises--
				if u.machines[r].final { // nobody can be told
					return
				}
				u.programs[r].joined = true
				u.feed(r, func(m *Machine) { m.Raise([]byte{byte(r), byte(p.raises)}, p.unwinds && p.raises == 1, m.Freeze()) })
			})
		} else if p.noticed && !p.waits && !u.machines[r].streams[Errors].joined {
			visit(fmt.Sprintf("%d joins", r), func(u *universe) {
				u.programs[r].joined = true
				u.feed(r, func(m *Machine) { m.Join(m.Freeze()) })
			})
		}
		if p.revokes {
			visit(fmt.Sprintf("%d revokes", r), func(u *universe) {
				u.programs[r].revokes = false
				u.feed(r, (*Machine).Revoke)
			})
		}
		if u.deaths > 0 {
			visit(fmt.Sprintf("%d dies", r), func(u *universe) {
				u.dead |= 1 << r
				u.deaths--
				for from := range n {
					delete(u.wires, [2]int{from, r})
				}
			})
		}
		if u.isDone(r) && p.closes && !p.closed {
			visit(fmt.Sprintf("%d closes", r), func(u *universe) {
				u.programs[r].closed, u.programs[r].prompt = true, true
				u.feed(r, (*Machine).Close)
			})
		}
		for d := range n {
			if !u.alive(d) && !u.machines[r].isDead(d) && !p.released {
				visit(fmt.Sprintf("%d learns that %d has died", r, d), func(u *universe) {
					u.feed(r, func(m *Machine) { m.Died(d) })
				})
			}
		}
		for from := range n {
			w := [2]int{from, r}
			if len(u.wires[w]) == 0 {
				continue
			}
			msg := u.wires[w][0]
			visit(fmt.Sprintf("%v %v reaches %d from %d", msg.Kind, msg.ID, r, from), func(u *universe) {
				u.wires[w] = u.wires[w][1:]
				u.feed(r, func(m *Machine) {
					if err := m.Step(from, msg); err != nil {
						panic(err)
					}
				})
			})
			if !u.alive(from) {
				visit(fmt.Sprintf("what %d sent %d is lost", from, r), func(u *universe) { delete(u.wires, w) })
			}
		}
	}
}

// explore visits every state once, and checks those in which nothing but deaths can happen.
func explore(t *testing.T, start *universe, check func(*universe) error) {
	seen := make(map[[sha256.Size]byte]bool)
	var path []string
	var visit func(u *universe)
	visit = func(u *universe) {
		k := u.key()
		if seen[k] {
			return
		}
		seen[k] = true
		over := true
		u.events(func(what string, change func(*universe)) {
			over = over && strings.HasSuffix(what, " dies")
			path = append(path, what)
			visit(u.after(t, path, change))
			path = path[:len(path)-1]
		})
		if over {
			if err := check(u); err != nil {
				require.FailNow(t, err.Error(), strings.Join(path, "\n"))
			}
		}
	}
	visit(start)
	t.Log(len(seen), "states")
}

// after returns what a change makes of u.
func (u *universe) after(t *testing.T, path []string, change func(*universe)) *universe {
	defer func() {
		if p := recover(); p != nil {
			require.FailNow(t, fmt.Sprint(p), strings.Join(path, "\n"))
		}
	}()
	next := u.clone()
	change(next)
	next.settle()
	return next
}

func newUniverse(n, deaths int, program func(rank int) program) *universe {
	u := &universe{deaths: deaths, wires: make(map[[2]int][]*Message)}
	for r := range n {
		u.machines = append(u.machines, NewMachine(r, n, 7, 0))
		u.programs = append(u.programs, program(r))
		if u.programs[r].creates {
			u.programs[r].created = make(map[errchan.Agreement]errchan.Decision)
		}
	}
	u.parent.reports = make([][]errchan.Settled, n)
	return u
}

// isDone says whether a rank's program has done what it wants, and nothing is pending.
func (u *universe) isDone(r int) bool {
	p := &u.programs[r]
	return len(p.agreed) == p.calls && len(p.proposed) == 0 && p.raises == 0 && !p.revokes && !p.noticed
}

func (u *universe) survivors() (ranks []int) {
	for r := range u.machines {
		if u.alive(r) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
