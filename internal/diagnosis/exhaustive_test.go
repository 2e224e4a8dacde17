package diagnosis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/diagnosis"
)

// network is machines with all that is under way between them.
type network struct {
	machines []*diagnosis.Machine
	links    map[[2]int][]diagnosis.Message // from, to
	dead     []bool
	untold   map[[2]int]bool // of the death of the first, the second
	deaths   int             // that may still come

	ask     []int // who may still ask, for the same reason
	asking  map[int]bool
	heard   []int // the first rank that each has heard to ask; -1: none
	printed []int
	history []string
}

func newNetwork(size int) *network {
	n := &network{links: make(map[[2]int][]diagnosis.Message), dead: make([]bool, size), untold: make(map[[2]int]bool), asking: make(map[int]bool)}
	for r := range size {
		n.machines = append(n.machines, diagnosis.NewMachine(r, size))
		n.heard = append(n.heard, -1)
	}
	return n
}

func text(rank int) string { return fmt.Sprint("text ", rank) }

// choices are what can happen next, in an order that does not change.
func (n *network) choices() (all []func()) {
	size := len(n.machines)
	for from := range size {
		for to := range size {
			link := [2]int{from, to}
			if len(n.links[link]) > 0 {
				all = append(all, func() { n.deliver(from, to) })
			}
			if n.untold[link] {
				all = append(all, func() {
					delete(n.untold, link)
					n.note("%d is told of %d", to, from)
					n.feed(to, func(m *diagnosis.Machine) { m.Died(from) })
				})
			}
		}
		if n.deaths > 0 && !n.dead[from] {
			for _, lost := range []bool{false, true} {
				all = append(all, func() {
					n.note("%d dies, what it sent is lost: %t", from, lost)
					n.die(from, lost)
				})
			}
		}
	}
	for i, r := range n.ask {
		all = append(all, func() {
			n.ask = slices.Delete(slices.Clone(n.ask), i, i+1)
			n.note("%d asks, unless it has heard another", r)
			if n.heard[r] < 0 && !n.dead[r] {
				n.asking[r] = true
				n.feed(r, func(m *diagnosis.Machine) { m.Ask(diagnosis.BySignal, text(r)) })
			}
		})
	}
	for r := range size {
		if n.asking[r] && !n.dead[r] && n.machines[r].Complete() {
			all = append(all, func() {
				delete(n.asking, r)
				_, rival := n.machines[r].End()
				if !(rival >= 0 && rival < r || n.heard[r] >= 0 && n.heard[r] < r) {
					n.printed = append(n.printed, r)
				}
			})
		}
	}
	return all
}

func (n *network) note(format string, args ...any) {
	n.history = append(n.history, fmt.Sprintf(format, args...))
}

// deliver delivers the oldest message of a link.
func (n *network) deliver(from, to int) {
	link := [2]int{from, to}
	msg := n.links[link][0]
	n.links[link] = n.links[link][1:]
	n.note("%d gets %+v of %d", to, msg, from)
	if msg.Said == nil && msg.Why != diagnosis.ByProgram && (n.heard[to] < 0 || msg.Origin < n.heard[to]) {
		n.heard[to] = msg.Origin
	}
	n.feed(to, func(m *diagnosis.Machine) { m.Step(from, &msg, text(to)) })
}

func (n *network) feed(r int, f func(*diagnosis.Machine)) {
	m := n.machines[r]
	f(m)
	for o, ok := m.Next(); ok; o, ok = m.Next() {
		if !n.dead[o.To] {
			link := [2]int{r, o.To}
			n.links[link] = append(slices.Clip(n.links[link]), *o.Message)
		}
	}
}

func (n *network) die(r int, lost bool) {
	n.deaths--
	n.dead[r] = true
	for to := range n.machines {
		delete(n.links, [2]int{to, r})
		delete(n.untold, [2]int{to, r})
		if lost {
			delete(n.links, [2]int{r, to})
		}
		if !n.dead[to] {
			n.untold[[2]int{r, to}] = true
		}
	}
}

// String has all that the future depends on.
func (n *network) String() string {
	var b strings.Builder
	for _, m := range n.machines {
		fmt.Fprintln(&b, m.State())
	}
	fmt.Fprint(&b, n.links, n.dead, n.untold, n.deaths, n.ask, n.asking, n.heard, n.printed)
	return b.String()
}

// explore calls check at every end of every order of what can happen after begin.
func explore(t *testing.T, begin func() *network, check func(*network)) {
	seen := make(map[string]bool)
	ends := 0
	var visit func(path []int)
	visit = func(path []int) {
		n := begin()
		for _, choice := range path {
			n.choices()[choice]()
		}
		state, choices := n.String(), n.choices()
		switch {
		case seen[state]:
			return
		case len(choices) == 0:
			ends++
			check(n)
			require.False(t, t.Failed(), "after\n%s", strings.Join(n.history, "\n"))
		}
		seen[state] = true
		for choice := range choices {
			visit(append(slices.Clip(path), choice))
		}
	}
	visit(nil)
	t.Logf("%d ends, %d states", ends, len(seen))
}

// No matter which ranks die, and when, the rank that asks gets an answer of all that live, and no
// other rank keeps anything of it.
func TestEveryOrderAndDeath(t *testing.T) {
	for size := 1; size <= 4; size++ {
		for deaths := range 3 {
			if size == 4 && deaths == 2 && testing.Short() {
				continue
			}
			for origin := range size {
				t.Run(fmt.Sprintf("%d ranks, %d deaths, of %d", size, deaths, origin), func(t *testing.T) {
					exploreDeaths(t, size, deaths, origin)
				})
			}
		}
	}
}

func exploreDeaths(t *testing.T, size, deaths, origin int) {
	explore(t, func() *network {
		n := newNetwork(size)
		n.deaths = min(deaths, size-1)
		n.feed(origin, func(m *diagnosis.Machine) { m.Ask(diagnosis.ByProgram, text(origin)) })
		return n
	}, func(n *network) { n.requireAnswers(t, origin) })
}

// requireAnswers checks the answers at the rank that asks, and that no other rank keeps anything.
func (n *network) requireAnswers(t *testing.T, origin int) {
	for r, m := range n.machines {
		if r != origin && !n.dead[r] {
			require.Empty(t, m.State().Surveys, "rank %d\n%s", r, strings.Join(n.history, "\n"))
		}
	}
	if n.dead[origin] {
		return
	}
	require.True(t, n.machines[origin].Complete(), strings.Join(n.history, "\n"))
	said, _ := n.machines[origin].End()
	require.Len(t, said, len(n.machines))
	for r, s := range said {
		if s != text(r) {
			require.True(t, n.dead[r] && s == "", "rank %d says %q\n%s", r, s, strings.Join(n.history, "\n"))
		}
	}
}

// Of ranks that ask for the same reason, whenever each does, one prints the answers.
func TestOnePrints(t *testing.T) {
	for _, ask := range [][]int{{0}, {1, 2}, {0, 1}, {2, 0}} {
		explore(t, func() *network {
			n := newNetwork(3)
			n.ask = ask
			return n
		}, func(n *network) { require.Len(t, n.printed, 1, "%v, after\n%s", ask, strings.Join(n.history, "\n")) })
	}
}
