package ulfmbackend

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// A universe is one state of a few ranks: their machines, the messages under way,
// and what their programs have seen. From each state every next event is tried:
// any message first in its channel arrives, any rank dies, learns of a death, or
// goes on in its program; what a dead rank has under way to another may get lost
// at any time. States that were seen before are left out.
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

// program is what a rank does, and what it has seen.
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
	c.out = queue{}
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
			b = errchan.AppendTruth(b, v)
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
			list(sorted(m.release.below.more))
			number(int(m.release.below.bits))
			flags(m.release.closed, m.release.sent, m.release.all, m.release.done)
			flags(m.notices.open, m.notices.corrupt(), m.early.open, m.early.corrupt(), m.revokes.open, m.left, m.final, m.endedSent)
			number(int(m.notices.fatal), int(m.early.told), int(m.early.fatal))
			number(int(m.ended.bits), len(m.mine))
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
			msg, err := decodeVoted(encodeVoted(o.Message, u.library != nil), m.size)
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
		case o.Call != nil:
			u.library.do(r, o.Call)
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
		v := Value{Flag: p.flag}
		if u.library != nil {
			v.Calls = errchan.Agree
		}
		m.Propose(id, v)
	})
}

// parentEvents visits what may come next in the parent.
func (u *universe) parentEvents(visit func(string, func(*universe))) {
	if !u.parent.errs {
		return
	}
	all := true
	var gone []int // who died, and may have joined before that
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

// explore visits every state once, and checks those in which nothing but deaths
// can happen. It returns how many there were.
func explore(t *testing.T, start *universe, check func(*universe) error) int {
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
			next := u.clone()
			path = append(path, what)
			func() {
				defer func() {
					if p := recover(); p != nil {
						require.FailNow(t, fmt.Sprint(p), strings.Join(path, "\n"))
					}
				}()
				change(next)
				next.settle()
			}()
			visit(next)
			path = path[:len(path)-1]
		})
		if over {
			if err := check(u); err != nil {
				require.FailNow(t, err.Error(), strings.Join(path, "\n"))
			}
		}
	}
	visit(start)
	return len(seen)
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

// H5: agreements end at all survivors, with the same flag and the same dead; the
// flag is the AND over contributors, among them all survivors.
func TestAgreementExhaustively(t *testing.T) {
	for _, test := range []struct{ n, calls, deaths int }{
		{1, 2, 0}, {2, 2, 1}, {3, 1, 2}, {3, 2, 1}, {4, 1, 1},
		{3, 2, 2}, {4, 2, 1}, {4, 1, 2}, {5, 1, 1},
	} {
		if (testing.Short() || buildtags.Race) && test.n*test.calls*test.deaths > 6 {
			continue
		}
		t.Run(fmt.Sprintf("%d ranks, %d calls, %d deaths", test.n, test.calls, test.deaths), func(t *testing.T) {
			t.Parallel()
			u := newUniverse(test.n, test.deaths, func(r int) program { return program{calls: test.calls, flag: ^(1 << r)} })
			states := explore(t, u, func(u *universe) error {
				living := u.survivors()
				for _, r := range living {
					p := u.programs[r]
					if len(p.agreed) != test.calls {
						return fmt.Errorf("rank %d has %d agreements, expected %d", r, len(p.agreed), test.calls)
					}
					if first := u.programs[living[0]]; !slices.EqualFunc(p.agreed, first.agreed, equalDecisions) {
						return fmt.Errorf("rank %d agreed %v, rank %d %v", living[0], first.agreed, r, p.agreed)
					}
					for _, d := range p.agreed {
						for _, other := range living {
							if d.Flag&(1<<other) != 0 {
								return fmt.Errorf("flag %b lacks what rank %d contributed", d.Flag, other)
							}
						}
						for _, x := range d.Dead {
							if u.alive(x) {
								return fmt.Errorf("rank %d lives, but %v", x, d)
							}
						}
					}
				}
				return nil
			})
			t.Log(states, "states")
		})
	}
}

func equalDecisions(a, b errchan.Decision) bool {
	return a.Flag == b.Flag && slices.Equal(a.Dead, b.Dead) && slices.Equal(a.Unacked, b.Unacked)
}

// P1, P2, H2: every survivor gets the same verdicts, and each report of a survivor
// is in one of them, unless a death made one of them the last.
func TestErrorsExhaustively(t *testing.T) {
	for _, test := range []struct {
		n, deaths int
		raises    []int
	}{
		{1, 0, []int{2}}, {2, 1, []int{1, 1}}, {3, 0, []int{1, 1, 1}}, {3, 1, []int{0, 1, 1}}, {3, 1, []int{1, 0, 0}},
		{3, 2, []int{0, 0, 1}}, {4, 2, []int{0, 0, 1, 0}}, {4, 1, []int{1, 0, 0, 1}}, {5, 1, []int{0, 1, 0, 0, 0}}, {4, 0, []int{0, 1, 0, 1}}, {4, 1, []int{0, 0, 1, 0}}, {4, 1, []int{0, 0, 0, 1}},
	} {
		if (testing.Short() || buildtags.Race) && test.n*test.deaths > 3 {
			continue
		}
		t.Run(fmt.Sprintf("raises %v, %d deaths", test.raises, test.deaths), func(t *testing.T) {
			t.Parallel()
			u := newUniverse(test.n, test.deaths, func(r int) program { return program{raises: test.raises[r]} })
			states := explore(t, u, func(u *universe) error {
				living := u.survivors()
				for _, r := range living {
					p, first := u.programs[r], u.programs[living[0]]
					if p.noticed || len(p.verdicts) != len(first.verdicts) {
						return fmt.Errorf("rank %d has %d verdicts (and one open: %t), rank %d %d",
							r, len(p.verdicts), p.noticed, living[0], len(first.verdicts))
					}
					own := 0
					for i, v := range p.verdicts {
						w := first.verdicts[i]
						if v.Round != w.Round || v.Corrupt != w.Corrupt || !slices.Equal(v.Dead, w.Dead) || len(v.Reports) != len(w.Reports) {
							return fmt.Errorf("rank %d got %+v, rank %d %+v", r, v, living[0], w)
						}
						for _, report := range v.Reports {
							if report.Rank == r {
								own++
							}
						}
						if v.Corrupt != (len(v.Dead) > 0) || v.Corrupt && i != len(p.verdicts)-1 {
							return fmt.Errorf("verdict %d of %d is %+v", i, len(p.verdicts), v)
						}
					}
					last := len(p.verdicts) > 0 && p.verdicts[len(p.verdicts)-1].Corrupt
					if own > test.raises[r] || own < test.raises[r] && !last {
						return fmt.Errorf("rank %d raised %d, and %d were resolved", r, test.raises[r], own)
					}
				}
				return nil
			})
			t.Log(states, "states")
		})
	}
}

// H2: if a survivor meets a dead rank, all get the same last verdict, with it.
func TestLossesExhaustively(t *testing.T) {
	for _, test := range []struct{ n, deaths, raises int }{{2, 1, 0}, {3, 1, 1}, {3, 2, 0}, {4, 1, 0}, {4, 2, 0}} {
		if buildtags.Race && test.n*test.deaths > 6 {
			continue // it is one goroutine's work
		}
		u := newUniverse(test.n, test.deaths, func(r int) program {
			p := program{needs: r != 1}
			if r == test.n-1 {
				p.raises = test.raises
			}
			return p
		})
		states := explore(t, u, func(u *universe) error {
			living := u.survivors()
			met := slices.ContainsFunc(living, func(r int) bool { return !u.programs[r].needs && r != 1 })
			for _, r := range living {
				v, first := u.programs[r].verdicts, u.programs[living[0]].verdicts
				if len(v) != len(first) {
					return fmt.Errorf("rank %d has %d verdicts, rank %d %d", r, len(v), living[0], len(first))
				}
				if met && (len(v) == 0 || len(v[len(v)-1].Dead) == 0 || !slices.Equal(v[len(v)-1].Dead, first[len(v)-1].Dead)) {
					return fmt.Errorf("rank %d got %v, rank %d %v", r, v, living[0], first)
				}
			}
			return nil
		})
		t.Log(test, states, "states")
	}
}

// P8, C2: if a survivor unwinds, or needs one that is dead, all survivors get the same
// final verdict, though some wait in Guard for nothing but the end of its context, and
// have heard before that another rank signals. So it is if somebody dies while a round is
// open.
func TestCorruptionsExhaustively(t *testing.T) {
	const signals, unwinds, waits, both, needs = 's', 'u', 'w', 'b', 'n'
	type ranks struct {
		ranks  string
		deaths int
		prompt bool
	}
	tests := []ranks{
		{ranks: "su"}, {ranks: "us"}, {ranks: "bw"}, {ranks: "wb"},
		{ranks: "suw"}, {ranks: "swu"}, {ranks: "usw"}, {ranks: "uws"}, {ranks: "wsu"}, {ranks: "wus"}, {ranks: "bww"}, {ranks: "wbw"}, {ranks: "wwb"},
		{ranks: "suw", deaths: 1}, {ranks: "swu", deaths: 1}, {ranks: "usw", deaths: 1}, {ranks: "uws", deaths: 1}, {ranks: "wsu", deaths: 1}, {ranks: "wus", deaths: 1},
		{ranks: "snw", deaths: 1}, {ranks: "wns", deaths: 1}, {ranks: "nsw", deaths: 1},
		{ranks: "sww", deaths: 1}, {ranks: "wsw", deaths: 1}, {ranks: "wws", deaths: 1}, {ranks: "ssw", deaths: 1}, {ranks: "wss", deaths: 1},
		{ranks: "suww"}, {ranks: "wsuw"}, {ranks: "wwsu"}, {ranks: "wusw"}, {ranks: "uwws"},
		{ranks: "uwww", deaths: 1}, {ranks: "wuww", deaths: 1}, {ranks: "wwwu", deaths: 1}, {ranks: "uww", deaths: 1}, {ranks: "wuw", deaths: 1}, {ranks: "wwu", deaths: 1}, {ranks: "uww"}, {ranks: "wuw"}, {ranks: "wwu"},
	}
	for _, test := range slices.Clone(tests) {
		test.prompt = true
		tests = append(tests, test)
	}
	for _, test := range tests {
		large := len(test.ranks) == 4 || test.deaths > 0
		if (testing.Short() || buildtags.Race) && large {
			continue
		}
		t.Run(fmt.Sprintf("%s, %d deaths, prompt %t", test.ranks, test.deaths, test.prompt), func(t *testing.T) {
			t.Parallel()
			u := newUniverse(len(test.ranks), test.deaths, func(r int) program {
				switch test.ranks[r] {
				case signals:
					return program{raises: 1, prompt: test.prompt}
				case unwinds:
					return program{raises: 1, unwinds: true, prompt: test.prompt}
				case both:
					return program{raises: 2, unwinds: true, prompt: test.prompt}
				case needs:
					return program{needs: true, prompt: test.prompt}
				}
				return program{waits: true, prompt: test.prompt}
			})
			ends := 0
			states := explore(t, u, func(u *universe) error {
				for r, p := range u.programs {
					if p.again > 0 && !strings.ContainsAny(test.ranks, "sb") {
						return fmt.Errorf("P6: rank %d has two notices of a round that is corrupt from the start", r)
					}
				}
				corrupt, err := u.isCorrupted(func(r int) bool {
					return test.ranks[r] == unwinds || test.ranks[r] == both || test.ranks[r] == needs && !u.programs[r].needs
				})
				if corrupt {
					ends++
				}
				return err
			})
			t.Log(states, "states,", ends, "ends with a corruption")
			if strings.ContainsAny(test.ranks, string([]rune{unwinds, both, needs})) {
				require.Positive(t, ends)
			}
		})
	}
}

// isCorrupted says whether a survivor was to have corrupted the communicator. Then all
// have to have the same verdicts, the last of them final.
func (u *universe) isCorrupted(does func(r int) bool) (bool, error) {
	living := u.survivors()
	for _, r := range living {
		if p := u.programs[r]; len(living) < len(u.programs) && p.noticed && p.waits {
			return false, fmt.Errorf("P8: the round that is open at rank %d will have a death in its verdict, and the rank waits in Guard", r)
		}
	}
	if !slices.ContainsFunc(living, does) {
		return false, nil
	}
	first := u.programs[living[0]].verdicts
	for _, r := range living {
		p := u.programs[r]
		if p.noticed || len(p.verdicts) != len(first) || len(first) == 0 || !p.verdicts[len(first)-1].Corrupt {
			return true, fmt.Errorf("P8: rank %d has %d verdicts (and one open: %t), rank %d %d, expected the last to be final",
				r, len(p.verdicts), p.noticed, living[0], len(first))
		}
		for i, v := range p.verdicts {
			if verdictText(v) != verdictText(first[i]) {
				return true, fmt.Errorf("rank %d got %s, rank %d %s", r, verdictText(v), living[0], verdictText(first[i]))
			}
		}
	}
	return true, nil
}

// Ranks whose programs have ended hold nobody up, and count as dead.
func TestLeavingExhaustively(t *testing.T) {
	for _, test := range []struct {
		n, deaths int
		leave     []int
	}{{2, 0, []int{0}}, {2, 0, []int{1}}, {3, 1, []int{0}}, {3, 1, []int{2}}, {3, 0, []int{0, 1}}, {4, 0, []int{0, 2}}, {4, 1, []int{2}}, {4, 1, []int{3}}} {
		u := newUniverse(test.n, test.deaths, func(r int) program {
			return program{calls: 2, flag: ^(1 << r), leaves: slices.Contains(test.leave, r)}
		})
		states := explore(t, u, func(u *universe) error {
			var first []errchan.Decision
			for _, r := range u.survivors() {
				p := u.programs[r]
				if p.leaves {
					continue
				}
				if first == nil {
					first = p.agreed
				}
				if len(p.agreed) != 2 || !slices.EqualFunc(p.agreed, first, equalDecisions) {
					return fmt.Errorf("rank %d agreed %v, another %v", r, p.agreed, first)
				}
				for _, gone := range test.leave {
					if !slices.Contains(p.agreed[1].Unacked, gone) {
						return fmt.Errorf("rank %d agreed %v without rank %d", r, p.agreed[1], gone)
					}
				}
			}
			return nil
		})
		t.Log(test, states, "states")
	}
}

// H4: if a survivor revokes, all survivors get to know, once.
func TestRevokeExhaustively(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for deaths := 0; deaths <= min(2, n-1); deaths++ {
			for by := range n {
				u := newUniverse(n, deaths, func(r int) program { return program{revokes: r == by || r == n-1} })
				explore(t, u, func(u *universe) error {
					for _, r := range u.survivors() {
						if got := u.programs[r].revoked; got > 1 || got == 0 && (u.alive(by) || u.alive(n-1)) {
							return fmt.Errorf("rank %d was told %d times", r, got)
						}
					}
					return nil
				})
			}
		}
	}
}

// H5: errors and agreements are one order. Whatever comes of which error, an agreement
// that one survivor has completed all complete that have proposed to it; so all who go
// on after an error call for the same next one, and end.
func TestAllOrNoneExhaustively(t *testing.T) {
	for _, test := range []struct {
		n, deaths int
		raises    []int
		parent    bool // has an error
		creates   bool
		calls     int
	}{
		{n: 1, raises: []int{1}, parent: true, calls: 1, creates: true},
		{n: 2, raises: []int{0, 0}, parent: true, calls: 2},
		{n: 2, raises: []int{1, 0}, calls: 2, creates: true},
		{n: 2, deaths: 1, raises: []int{1, 1}, calls: 1},
		{n: 2, deaths: 1, raises: []int{0, 1}, parent: true, calls: 1},
		{n: 3, raises: []int{0, 0, 0}, parent: true, calls: 1},
		{n: 3, raises: []int{0, 0, 0}, parent: true, creates: true},
		{n: 3, raises: []int{1, 0, 0}, calls: 1},
		{n: 3, deaths: 1, raises: []int{0, 0, 0}, parent: true, calls: 1},
		{n: 3, deaths: 1, raises: []int{0, 1, 0}, calls: 1}, // 0 decides, then a verdict; the messages 0→1 are lost with 0
		{n: 3, deaths: 1, raises: []int{0, 0, 1}, calls: 1},
		{n: 3, deaths: 2, raises: []int{0, 0, 1}, calls: 1},
		{n: 3, raises: []int{0, 1, 0}, parent: true, calls: 1},
		{n: 3, deaths: 1, raises: []int{0, 1, 0}, parent: true, calls: 1},
	} {
		large := test.n == 3 && (test.parent || test.deaths > 0)
		huge := large && test.parent && test.deaths > 0 && slices.Max(test.raises) > 0 // minutes: make nightly
		if (testing.Short() || buildtags.Race) && large || huge && os.Getenv("MPICX_NIGHTLY") == "" {
			continue
		}
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			t.Parallel()
			u := newUniverse(test.n, test.deaths, func(r int) program {
				return program{calls: test.calls, creates: test.creates, flag: ^(1 << r), raises: test.raises[r]}
			})
			u.parent.errs = test.parent
			states := explore(t, u, func(u *universe) error {
				living := u.survivors()
				first := u.programs[living[0]]
				for _, r := range living {
					p := u.programs[r]
					if len(p.proposed) > 0 {
						return fmt.Errorf("rank %d waits for %v", r, p.proposed)
					}
					if len(p.agreed) != test.calls || !slices.EqualFunc(p.agreed, first.agreed, equalDecisions) {
						return fmt.Errorf("rank %d agreed %v, rank %d %v", living[0], first.agreed, r, p.agreed)
					}
					if !maps.EqualFunc(p.created, first.created, equalDecisions) || test.creates != (len(p.created) == 1) {
						return fmt.Errorf("rank %d created %v, rank %d %v", living[0], first.created, r, p.created)
					}
				}
				return nil
			})
			t.Log(states, "states")
		})
	}
}

// H6: who has closed the communicator forgets it once all have, and not before: though
// those who have forgotten it take no message any more, the others come to their end.
// Nobody keeps it, unless somebody dies who has been told that all have closed it.
func TestReleaseExhaustively(t *testing.T) {
	for _, test := range []struct {
		n, deaths, calls int
		raises           []int
		revokes          []int
	}{
		{n: 1, raises: []int{1}},
		{n: 2, calls: 2, raises: []int{1, 0}, revokes: []int{1}},
		{n: 2, deaths: 1, raises: []int{1, 1}},
		{n: 3, raises: []int{0, 1, 1}},
		{n: 3, calls: 1, raises: []int{0, 0, 1}},
		{n: 3, calls: 1, raises: []int{0, 0, 0}, revokes: []int{0, 2}},
		{n: 4, raises: []int{0, 0, 0, 0}, revokes: []int{3}},
		{n: 3, deaths: 1, raises: []int{0, 0, 1}},
		{n: 3, deaths: 1, calls: 1, raises: []int{0, 0, 0}},
		{n: 4, deaths: 1, raises: []int{0, 0, 0, 0}, revokes: []int{1}},
		{n: 4, raises: []int{0, 0, 1, 0}},
		{n: 4, deaths: 2, raises: []int{0, 0, 0, 0}},
		{n: 4, deaths: 1, raises: []int{0, 0, 0, 1}},
	} {
		huge := test.n*test.deaths == 4 && slices.Max(test.raises) > 0
		if (testing.Short() || buildtags.Race) && test.n*(1+test.deaths) > 4 || huge && os.Getenv("MPICX_NIGHTLY") == "" {
			continue
		}
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			t.Parallel()
			u := newUniverse(test.n, test.deaths, func(r int) program {
				return program{calls: test.calls, flag: -1, raises: test.raises[r], revokes: slices.Contains(test.revokes, r), closes: true}
			})
			ends := 0
			states := explore(t, u, func(u *universe) error {
				released := slices.ContainsFunc(u.programs, func(p program) bool { return p.released })
				for _, r := range u.survivors() {
					p := &u.programs[r]
					switch {
					case !p.closed:
						return fmt.Errorf("rank %d hangs: %s", r, u.machines[r].Waiting())
					case !p.released && (u.dead == 0 || !released):
						return fmt.Errorf("rank %d keeps what all have closed", r)
					case p.released:
						ends++
					}
				}
				return nil
			})
			t.Log(states, "states,", ends, "releases in the end")
			require.Positive(t, ends)
		})
	}
}
