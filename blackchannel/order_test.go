package blackchannel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

// world is a state of all machines, of the messages between them, and of what
// the ranks are still going to raise.
type world struct {
	machines []Machine
	queues   map[[2]int][]*Message
	raises   []planned         // not raised so far; those of a rank in order
	verdicts []string          // of each rank
	notices  map[[2]int]string // those of the open round that went over an edge: p, and c for a corrupt one
	told     []string          // likewise, of what each rank was told
	err      error
}

type planned struct {
	rank    int
	name    string
	corrupt bool
}

func (w *world) clone() *world {
	c := &world{machines: slices.Clone(w.machines), queues: make(map[[2]int][]*Message, len(w.queues)),
		raises: slices.Clone(w.raises), verdicts: slices.Clone(w.verdicts), notices: maps.Clone(w.notices), told: slices.Clone(w.told), err: w.err}
	for i := range c.machines {
		m := &c.machines[i]
		m.reports, m.mine, m.copies = slices.Clone(m.reports), slices.Clone(m.mine), &copies{first: m}
	}
	for e, q := range w.queues {
		if len(q) > 0 {
			c.queues[e] = slices.Clone(q)
		}
	}
	return c
}

// key tells states apart.
func (w *world) key() string {
	var b strings.Builder
	for i := range w.machines {
		m := &w.machines[i]
		fmt.Fprintf(&b, "%d%t%t%t%t%d%s/%s%t%t;%s|", m.round, m.open, m.fatal, m.joined, m.sent, m.heard,
			names(m.reports), names(m.mine), m.gone, m.final, w.verdicts[i])
		for j := range w.machines {
			for _, msg := range w.queues[[2]int{i, j}] {
				fmt.Fprintf(&b, "%d>%d:%s", i, j, encoded(msg))
			}
		}
	}
	fmt.Fprint(&b, w.raises)
	return b.String()
}

func names(reports []errchan.Report) string {
	s := ""
	for _, r := range reports {
		s += string(r.Data) + ","
	}
	return s
}

func encoded(msg *Message) string {
	return string(Encode(msg))
}

func (w *world) carry(r int) {
	for o, ok := w.machines[r].Next(); ok; o, ok = w.machines[r].Next() {
		switch {
		case o.Message != nil:
			e := [2]int{r, o.To}
			w.queues[e] = append(w.queues[e], o.Message)
			if o.Message.Kind == Notice {
				w.notices[e] = w.once(w.notices[e], o.Message.Corrupt, "P6: from and to", e)
			}
		case o.Noticed != nil:
			w.told[r] = w.once(w.told[r], o.Noticed.Corrupt, "told to", r)
		case o.Resolved != nil:
			w.told[r] = ""
			maps.DeleteFunc(w.notices, func(e [2]int, _ string) bool { return e[0] == r })
			w.verdicts[r] += fmt.Sprintf("%d%t:%s;", o.Resolved.Round, o.Resolved.Corrupt, names(o.Resolved.Reports))
		}
	}
}

// once adds a notice to those before, of which there may be one, and one more that is
// the first to say corrupt.
func (w *world) once(before string, corrupt bool, what string, who any) string {
	kind := "p"
	if corrupt {
		kind = "c"
	}
	if before != "" && !(before == "p" && corrupt) {
		w.err = fmt.Errorf("%s %v: notice %s after %s", what, who, kind, before)
	}
	return before + kind
}

// quiet returns an error if no message is under way, and a rank knows of a corruption, or
// of the round, that another does not (P8).
func (w *world) quiet() error {
	for _, q := range w.queues {
		if len(q) > 0 {
			return nil
		}
	}
	for r := range w.machines {
		if m, first := &w.machines[r], &w.machines[0]; m.open != first.open || m.fatal != first.fatal {
			return fmt.Errorf("P8: rank 0 knows of a round: %t, a corruption: %t, rank %d: %t, %t", first.open, first.fatal, r, m.open, m.fatal)
		}
	}
	return nil
}

// next calls visit with each state that can follow.
func (w *world) next(visit func(*world, error)) (any bool) {
	for e, q := range w.queues {
		if len(q) == 0 {
			continue
		}
		any = true
		c := w.clone()
		c.queues[e] = c.queues[e][1:]
		err := c.machines[e[1]].Step(e[0], q[0])
		c.carry(e[1])
		visit(c, err)
	}
	for i, p := range w.raises {
		if slices.IndexFunc(w.raises, func(o planned) bool { return o.rank == p.rank }) < i {
			continue
		}
		any = true
		c := w.clone()
		c.raises = slices.Delete(c.raises, i, i+1)
		c.machines[p.rank].Raise([]byte(p.name), p.corrupt)
		c.carry(p.rank)
		visit(c, nil)
	}
	for r := range w.machines {
		if m := &w.machines[r]; m.open && !m.joined {
			any = true
			c := w.clone()
			c.machines[r].Join()
			c.carry(r)
			visit(c, nil)
		}
	}
	return any
}

// TestEveryOrder goes through every state that up to two errors, raised at any
// time and rank, can lead to, whatever the order of messages and joins: all
// ranks get the same verdicts, a report is in exactly one, and no message comes
// unexpectedly. Whenever no message is under way, all know whether somebody has unwound,
// and a round in which nobody signals has each notice once.
func TestEveryOrder(t *testing.T) {
	most := 4
	if testing.Short() {
		most = 3
	}
	for n := 1; n <= most; n++ {
		var states, ends int
		for first := range n {
			for second := range n + 1 { // n: only one error
				for corrupt := range 4 {
					if second == n && corrupt > 1 {
						continue
					}
					raises := []planned{{first, "a", corrupt&1 != 0}}
					if second < n {
						raises = append(raises, planned{second, "b", corrupt&2 != 0})
					}
					s, e := explore(t, n, raises)
					states, ends = states+s, ends+e
				}
			}
		}
		t.Logf("%d ranks: %d states, %d of them ends", n, states, ends)
	}
}

func explore(t *testing.T, n int, raises []planned) (states, ends int) {
	start := &world{machines: make([]Machine, n), queues: map[[2]int][]*Message{}, raises: raises, verdicts: make([]string, n), notices: map[[2]int]string{}, told: make([]string, n)}
	signals := slices.ContainsFunc(raises, func(p planned) bool { return !p.corrupt })
	for r := range n {
		start.machines[r] = *NewMachine(r, n)
		start.machines[r].first = &start.machines[r]
	}
	seen := map[string]bool{start.key(): true}
	for todo := []*world{start}; len(todo) > 0; {
		w := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		states++
		require.NoError(t, w.err, "raises %v", raises)
		require.NoError(t, w.quiet(), "raises %v", raises)
		require.False(t, !signals && slices.Contains(w.told, "pc"), "P6: raises %v", raises)
		if w.next(func(c *world, err error) {
			require.NoError(t, err, "raises %v", raises)
			if k := c.key(); !seen[k] {
				seen[k] = true
				todo = append(todo, c)
			}
		}) {
			continue
		}
		ends++
		w.check(t, raises)
	}
	return states, ends
}

func (w *world) check(t *testing.T, raises []planned) {
	all := w.verdicts[0]
	for r := range w.machines {
		require.Equal(t, all, w.verdicts[r], "rank %d, raises %v", r, raises)
		require.False(t, w.machines[r].open, "rank %d, raises %v", r, raises)
	}
	corrupt := slices.ContainsFunc(raises, func(p planned) bool { return p.corrupt })
	require.Equal(t, corrupt, strings.Contains(all, "true"), "verdicts %s, raises %v", all, raises)
	for _, p := range raises {
		count := strings.Count(all, p.name+",")
		if !corrupt || p.corrupt && len(raises) == 1 {
			require.Equal(t, 1, count, "verdicts %s, raises %v", all, raises)
		}
		require.LessOrEqual(t, count, 1)
	}
}
