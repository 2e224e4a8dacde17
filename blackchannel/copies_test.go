package blackchannel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/errchan"
)

// planned is an error that a rank is going to raise. It raises its errors in order.
type planned struct {
	rank    int
	name    string
	corrupt bool
}

func names(reports []errchan.Report) (s string) {
	for _, r := range reports {
		s += string(r.Data) + ","
	}
	return s
}

// clan is the machines of a communicator, its duplicate, that one's, and so on, at all ranks, and
// the messages between them. It is changed by steps, of which every order is possible.
type clan struct {
	n, comms int
	machines [][]*Machine          // [comm][rank]; nil: the rank has not made it
	queues   map[[2]int][]*Message // by from and to
	notices  map[[4]uint64][]bool  // whether each says corrupt, by from, to, the comm they are about, and round
	raises   []planned             // not raised so far; the comm is in on
	on       []int
	signals  bool       // some of them: without, no rank is told twice of a round
	verdicts [][]string // [comm][rank]
	rounds   [][]int    // noticed
	fatal    [][]bool   // as corrupt, and open
	closes   bool       // ranks close the communicators, or their programs end, when they have raised what they raise
	closed   [][]bool
	released [][]bool
	path     []byte // the steps so far
}

func newClan(p program) *clan {
	c := &clan{n: p.n, comms: p.comms, queues: map[[2]int][]*Message{}, notices: map[[4]uint64][]bool{}, raises: p.raises, on: p.on, closes: p.closes,
		signals: slices.ContainsFunc(p.raises, func(p planned) bool { return !p.corrupt }), machines: eachSide[*Machine](p),
		verdicts: eachSide[string](p), rounds: eachSide[int](p), fatal: eachSide[bool](p), closed: eachSide[bool](p), released: eachSide[bool](p)}
	for r := range p.n {
		c.machines[0][r] = NewMachine(r, p.n)
	}
	return c
}

// eachSide has a value for each communicator and rank.
func eachSide[T any](p program) [][]T { return clone(slices.Repeat([][]T{make([]T, p.n)}, p.comms)) }

func (c *clan) clone() *clan {
	d := *c
	d.queues, d.notices, d.path = maps.Clone(c.queues), maps.Clone(c.notices), slices.Clip(c.path)
	d.machines, d.verdicts, d.rounds = clone(c.machines), clone(c.verdicts), clone(c.rounds)
	d.fatal, d.closed, d.released = clone(c.fatal), clone(c.closed), clone(c.released)
	for r, m := range c.machines[0] {
		all := &copies{duplicates: make(map[uint64]*Machine)}
		own := func(m *Machine) *Machine {
			n := *m
			n.copies, n.reports, n.mine, n.held = all, slices.Clone(m.reports), slices.Clone(m.mine), slices.Clone(m.held)
			return &n
		}
		all.first = own(m)
		d.machines[0][r] = all.first
		for id, dup := range m.duplicates {
			all.duplicates[id] = own(dup)
		}
		for id := 1; id < c.comms; id++ {
			if dup := c.machines[id][r]; dup != nil && all.duplicates[uint64(id)] != nil {
				d.machines[id][r] = all.duplicates[uint64(id)]
			} else if dup != nil { // closed
				d.machines[id][r] = own(dup)
			}
		}
	}
	return &d
}

func clone[T any](s [][]T) [][]T {
	c := make([][]T, len(s))
	for i := range s {
		c[i] = slices.Clone(s[i])
	}
	return c
}

// carry takes a rank's output. It returns an error if it is what no driver can carry out.
func (c *clan) carry(r int) error {
	m := c.machines[0][r]
	for o, ok := m.Next(); ok; o, ok = m.Next() {
		comm := o.Of.id
		switch {
		case o.Message != nil:
			if o.Message.Kind == Notice {
				e := [4]uint64{uint64(r), uint64(o.To), comm, o.Message.Round}
				if told := c.notices[e]; len(told) > 1 || len(told) == 1 && (told[0] || !o.Message.Corrupt) {
					return fmt.Errorf("P6: rank %d tells %d of communicator %d, corrupt %t, after %t", r, o.To, comm, o.Message.Corrupt, told)
				}
				c.notices[e] = append(slices.Clip(c.notices[e]), o.Message.Corrupt)
			}
			q := [2]int{r, o.To}
			c.queues[q] = append(slices.Clip(c.queues[q]), o.Message)
		case c.machines[comm][r] == nil:
			return fmt.Errorf("rank %d is told of an error of communicator %d, which it has not made", r, comm)
		case o.Noticed != nil:
			switch seen := uint64(c.rounds[comm][r]); {
			case o.Noticed.Round == seen:
				c.rounds[comm][r]++
			case o.Noticed.Round+1 != seen || !o.Noticed.Corrupt || c.fatal[comm][r] || !c.signals:
				return fmt.Errorf("rank %d is told of round %d, corrupt %t, after %d, corrupt %t", r, o.Noticed.Round, o.Noticed.Corrupt, seen, c.fatal[comm][r])
			}
			c.fatal[comm][r] = o.Noticed.Corrupt
		case o.Released:
			if c.released[comm][r] || slices.Contains(c.closed[comm], false) || o.Of.open {
				return fmt.Errorf("H6: rank %d is told that all have closed communicator %d, closed %t, told %t, open %t", r, comm, c.closed[comm], c.released[comm], o.Of.open)
			}
			c.released[comm][r] = true
		default:
			c.fatal[comm][r] = false
			c.verdicts[comm][r] += fmt.Sprintf("%d%t:%s;", o.Resolved.Round, o.Resolved.Corrupt, names(o.Resolved.Reports))
		}
	}
	return nil
}

// steps returns what can happen next: first the deliveries, whose number is the other result.
func (c *clan) steps() (steps []func() error, deliveries int) {
	for from := range c.n {
		for to := range c.n {
			if q := [2]int{from, to}; len(c.queues[q]) > 0 {
				steps = append(steps, func() error { return c.deliver(q) })
			}
		}
	}
	deliveries = len(steps)
	for comm := range c.comms {
		for r, m := range c.machines[comm] {
			switch {
			case m == nil:
				if c.machines[comm-1][r] != nil && !c.closed[comm-1][r] {
					steps = append(steps, c.at(r, func() { c.dup(comm, r) }))
				}
			case m.open && !m.joined:
				steps = append(steps, c.at(r, m.Join))
			case c.closes && comm > 0 && !c.closed[comm][r] && !m.open && !c.mayRaise(comm, r) &&
				(comm+1 == c.comms || c.machines[comm+1][r] == nil || c.released[comm+1][r]):
				steps = append(steps, c.at(r, func() {
					c.closed[comm][r] = true
					m.Release()
				}))
			case c.closes && comm == 0 && !c.closed[comm][r] && !c.mayRaise(comm, r):
				steps = append(steps, c.at(r, func() { c.leave(r) }))
			}
		}
	}
	for i, p := range c.raises {
		m := c.machines[c.on[i]][p.rank]
		if m != nil && !slices.ContainsFunc(c.raises[:i], func(o planned) bool { return o.rank == p.rank }) {
			steps = append(steps, c.at(p.rank, func() {
				c.raises, c.on = slices.Delete(slices.Clone(c.raises), i, i+1), slices.Delete(slices.Clone(c.on), i, i+1)
				m.Raise([]byte(p.name), p.corrupt)
			}))
		}
	}
	return steps, deliveries
}

// dup has a rank make its side of a duplicate.
func (c *clan) dup(comm, r int) {
	d := c.machines[comm-1][r].Dup(uint64(comm))
	c.machines[comm][r] = d
	d.Listen()
}

// leave ends a rank's program, whether it has made and closed the duplicates or not.
func (c *clan) leave(r int) {
	for comm := range c.comms {
		c.closed[comm][r] = true
		if m := c.machines[comm][r]; m != nil && !c.released[comm][r] {
			m.Release()
		}
	}
}

// at is a step of a rank.
func (c *clan) at(r int, do func()) func() error {
	return func() error {
		do()
		return c.carry(r)
	}
}

// deliver delivers the oldest message of a queue.
func (c *clan) deliver(q [2]int) error {
	msg := c.queues[q][0]
	if c.queues[q] = c.queues[q][1:]; len(c.queues[q]) == 0 {
		delete(c.queues, q)
	}
	if c.released[msg.Comm][q[1]] {
		return fmt.Errorf("H6: %v about communicator %d reaches rank %d, which has forgotten it", msg.Kind, msg.Comm, q[1])
	}
	if err := c.machines[0][q[1]].Step(q[0], msg); err != nil {
		return err
	}
	return c.carry(q[1])
}

// mayRaise says whether a rank is going to raise an error on comm or a duplicate of it.
func (c *clan) mayRaise(comm, r int) bool {
	for i, p := range c.raises {
		if p.rank == r && c.on[i] >= comm {
			return true
		}
	}
	return false
}

// told returns an error if nothing is under way, and a rank has its side of a communicator and was
// not told of an error of it (P8). It does not matter which ranks have not made their sides.
func (c *clan) told() error {
	for comm, ms := range c.machines {
		most := slices.Max(c.rounds[comm])
		for r, m := range ms {
			if m != nil && c.rounds[comm][r] != most {
				return fmt.Errorf("P8: rank %d has been told of %d errors of communicator %d, another of %d", r, c.rounds[comm][r], comm, most)
			}
			if m != nil && slices.Contains(c.fatal[comm], true) && !c.fatal[comm][r] {
				return fmt.Errorf("P8: rank %d has not been told that communicator %d is corrupt, another has", r, comm)
			}
		}
	}
	return nil
}

// ended checks the state in which nothing can happen.
func (c *clan) ended(raises []planned, on []int) error {
	if len(c.queues) > 0 || len(c.raises) > 0 {
		return fmt.Errorf("messages %v and raises %v are left", c.queues, c.raises)
	}
	for comm, ms := range c.machines {
		all := slices.MaxFunc(c.verdicts[comm], func(a, b string) int { return len(a) - len(b) })
		for r, m := range ms {
			switch {
			case m == nil: // it has left before
			case m.open || c.verdicts[comm][r] != all:
				return fmt.Errorf("P2: rank %d has verdicts %q, open %t, another has %q", r, c.verdicts[comm][r], m.open, all)
			case c.closes && (!c.released[comm][r] || len(m.duplicates) > 0):
				return fmt.Errorf("H6: rank %d keeps communicator %d, told %t, %d duplicates", r, comm, c.released[comm][r], len(m.duplicates))
			}
		}
		corrupt := strings.Contains(all, "true")
		for i, p := range raises {
			count := strings.Count(all, p.name+",")
			if on[i] == comm && p.corrupt && !corrupt {
				return fmt.Errorf("C1: the verdicts %q of communicator %d are not final", all, comm)
			}
			if on[i] == comm && count != 1 && !(corrupt && count == 0) || on[i] != comm && count > 0 {
				return fmt.Errorf("P1: %q is %d times in verdicts %q of communicator %d", p.name, count, all, comm)
			}
		}
	}
	return nil
}

// key tells states apart.
func (c *clan) key() string {
	var b strings.Builder
	for r, first := range c.machines[0] {
		for comm := range c.comms {
			m := first
			if comm > 0 {
				m = first.duplicates[uint64(comm)]
			}
			if m == nil {
				b.WriteString("-|")
				continue
			}
			fmt.Fprintf(&b, "%t%d%t,%d%t%t%t%t%d%s/%s%t%t%t%d;%s|", m.released, m.below, m.ended, m.round, m.open, m.fatal, m.joined, m.sent, m.heard, names(m.reports), names(m.mine),
				m.gone, m.final, m.made, len(m.held), c.verdicts[comm][r])
		}
		for to := range c.n {
			for _, msg := range c.queues[[2]int{r, to}] {
				fmt.Fprintf(&b, "%d%q", to, Encode(msg))
			}
		}
	}
	fmt.Fprint(&b, c.raises, c.closed, c.released)
	return b.String()
}

// program is the errors that ranks raise, and on which communicators.
type program struct {
	n, comms int
	raises   []planned
	on       []int
	closes   bool
}

// explore goes through every state that the errors of programs can lead to, whatever the order of
// messages, joins, and of ranks making their sides: whenever no message can be delivered, every
// rank that has its side of a communicator has been told of its error, and in the end all have the
// same verdicts.
func explore(t *testing.T, programs []program) {
	states, ends := 0, 0
	for _, p := range programs {
		seen := map[string]bool{}
		for todo := []*clan{newClan(p)}; len(todo) > 0; {
			c := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			k := c.key()
			if seen[k] {
				continue
			}
			seen[k] = true
			states++
			steps, deliveries := c.steps()
			if deliveries == 0 {
				require.NoError(t, c.told(), "%+v, steps %v", p, c.path)
			}
			if len(steps) == 0 {
				ends++
				require.NoError(t, c.ended(p.raises, p.on), "%+v, steps %v", p, c.path)
			}
			for k := range steps {
				next := c.clone()
				next.path = append(next.path, byte(k))
				own, _ := next.steps()
				require.NoError(t, own[k](), "%+v, steps %v", p, next.path)
				todo = append(todo, next)
			}
		}
	}
	t.Logf("%d states, %d of them ends", states, ends)
}

// TestEveryOrder has up to two errors, raised at any time and rank.
func TestEveryOrder(t *testing.T) {
	most := 4
	if testing.Short() {
		most = 3
	}
	var programs []program
	for n := 1; n <= most; n++ {
		for k := range 4 * n * n {
			first, second := planned{k / 4 % n, "a", k&1 != 0}, planned{k / 4 / n, "b", k&2 != 0}
			programs = append(programs, program{n, 1, []planned{first}, []int{0}, k < 4*n}, program{n, 1, []planned{first, second}, []int{0, 0}, n == 3})
		}
	}
	explore(t, programs)
}

// TestP8EveryOrder has a communicator and its duplicates, which ranks make at any time. In some
// programs they close these, or end, at any time too (H6).
func TestP8EveryOrder(t *testing.T) {
	var programs []program
	few := testing.Short() || buildtags.Race
	for r := range 3 {
		programs = append(programs, program{3, 3, []planned{{r, "a", false}}, []int{2}, true})
		for s := range 3 {
			if few && r+s != 2 {
				continue
			}
			programs = append(programs, program{3, 3, []planned{{r, "a", false}, {s, "b", false}}, []int{1, 2}, false})
		}
	}
	for r := range 4 {
		programs = append(programs, program{4, 2, []planned{{r, "a", false}}, []int{1}, r == 3 && !few})
		for s := range 4 {
			if few && r+2*s != 5 {
				continue
			}
			programs = append(programs, program{4, 2, []planned{{r, "a", s == 1}, {s, "b", s == 2}}, []int{1, 1}, false})
			if r < 3 && s < 3 {
				programs = append(programs, program{3, 2, []planned{{r, "a", s == 1}, {s, "b", s == 2}}, []int{s % 2, 1}, true})
			}
		}
	}
	explore(t, programs)
}
