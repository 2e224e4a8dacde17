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
	calls         int  // agreements it wants; it calls again when an error ends one
	creates       bool // a communicator; likewise
	flag          int
	noticed       bool
	fatal         bool // a corruption, in the open round
	raises        int
	unwinds       bool // by the last of these
	waits         bool // for the end of the context of a Guard: it joins nothing before
	prompt        bool // it joins as soon as it is told
	secondNotices int  // how many second notices of a round
	revokes       bool
	needs         bool // the first dead that it learns of
	leaves        bool // instead of its last agreement
	left          bool
	joined        bool // a round that is open

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
	c.proposed = maps.Clone(m.proposed)
	for k := range streams {
		c.streams[k] = new(*m.stream(k))
	}
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
			for k := range streams {
				s := m.stream(k)
				flags(s.joined, s.sent, s.last != nil)
				list(sorted(s.heard))
				b = append(b, Encode(&Message{Kind: Up, Stream: k, ID: s.id, Value: &s.value})...)
				if s.last != nil {
					b = append(b, Encode(&Message{Kind: Up, Value: s.last.Value})...)
					number(s.last.Origin)
				}
				b = errchan.AppendReports(b, s.late)
			}
			b = appendSettled(b, m.past)
			for _, id := range m.open {
				number(int(id.Epoch), int(streamOf(id)), int(id.Seq))
			}
			list(m.gone)
			flags(m.frozen, m.abandoned)
			number(int(m.epoch), len(m.later))
			list(m.dead)
			list(m.missed)
			flags(m.released)
			flags(m.notices.open, m.notices.corrupt(), m.early.open, m.early.corrupt(), m.revokes.open, m.left, m.final)
			number(int(m.notices.fatal), int(m.early.told), int(m.early.fatal))
			number(len(m.mine))
		}
		p := u.programs[r]
		number(p.secondNotices)
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
			round := m.stream(Errors).id.Seq
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

func (u *universe) tell(format string, args ...any) {
	if u.trace != nil {
		u.trace(format, args...)
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
