package blackchannel

import (
	"fmt"
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
	raises   []planned // not raised so far; those of a rank in order
	verdicts []string  // of each rank
}

type planned struct {
	rank    int
	name    string
	corrupt bool
}

func (w *world) clone() *world {
	c := &world{machines: slices.Clone(w.machines), queues: make(map[[2]int][]*Message, len(w.queues)),
		raises: slices.Clone(w.raises), verdicts: slices.Clone(w.verdicts)}
	for i := range c.machines {
		m := &c.machines[i]
		m.reports, m.mine, m.out = slices.Clone(m.reports), slices.Clone(m.mine), nil
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
		fmt.Fprintf(&b, "%d%t%t%t%d%s/%s%t%t;%s|", m.round, m.open, m.joined, m.sent, m.heard,
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
	for _, o := range w.machines[r].Output() {
		switch {
		case o.Message != nil:
			e := [2]int{r, o.To}
			w.queues[e] = append(w.queues[e], o.Message)
		case o.Resolved != nil:
			w.verdicts[r] += fmt.Sprintf("%d%t:%s;", o.Resolved.Round, o.Resolved.Corrupt, names(o.Resolved.Reports))
		}
	}
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
// unexpectedly.
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
	start := &world{machines: make([]Machine, n), queues: map[[2]int][]*Message{}, raises: raises, verdicts: make([]string, n)}
	for r := range n {
		start.machines[r] = *NewMachine(r, n)
	}
	seen := map[string]bool{start.key(): true}
	for todo := []*world{start}; len(todo) > 0; {
		w := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		states++
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
