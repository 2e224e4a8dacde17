package ledger

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/internal/buildtags"
)

// TestUniverse tries all that can happen at one rank of a small family, in every order: what its
// program does, when its channels tell of rounds and verdicts, and when the driver carries out
// Complete and Advance. A model beside the ledger, which knows the rules in their simplest words,
// says at each step what has to come of it. From each state that is reached, all open rounds are
// brought to their ends, which has to tell every verdict once and leave nothing open.
//
// Each universe is tried twice: without a Try, where looks end errors (T4), and with one on each
// communicator, again and again, whose ends do (T1 to T3).
func TestUniverse(t *testing.T) {
	for _, u := range []universe{
		{name: "parent and child", family: "world child<world",
			rounds: []int{1, 1}, raises: []int{1, 1}, waits: 3, asks: true, everywhere: true},
		{name: "two rounds", family: "world child<world",
			rounds: []int{2, 1}, raises: []int{1, 0}, waits: 3},
		{name: "three generations", family: "world child<world leaf<child",
			rounds: []int{1, 1, 1}, raises: []int{0, 1, 0}, waits: 2, everywhere: true},
		{name: "siblings", family: "world left<world right<world",
			rounds: []int{1, 1, 1}, raises: []int{1, 0, 0}, waits: 2},
		{name: "made meanwhile", family: "world child<world leaf<child+",
			rounds: []int{1, 1, 0}, raises: []int{0, 1, 1}, waits: 2},
		{name: "closed meanwhile", family: "world child<world leaf<child",
			rounds: []int{1, 1, 1}, raises: []int{0, 0, 1}, waits: 1, closes: true},
		{name: "votes", family: "world child<world",
			rounds: []int{1, 1}, raises: []int{1, 1}, waits: 2, tryAll: true},
		{name: "corruption", family: "world gone<world whole<world whole2<world",
			rounds: []int{1, 1, 0, 0}, raises: []int{1, 0, 0, 0}, waits: 2, corrupts: true},
		{name: "corruption of an open round", family: "world child<world",
			rounds: []int{2, 1}, raises: []int{1, 0}, waits: 2, worsens: true},
		{name: "unwinding", family: "world child<world",
			rounds: []int{1, 1}, raises: []int{1, 1}, waits: 2, unwinds: true, everywhere: true},
	} {
		for _, tries := range []bool{false, true} {
			u := u
			u.tries = tries
			t.Run(fmt.Sprintf("%s/tries=%t", u.name, u.tries), func(t *testing.T) {
				t.Parallel()
				u.explore(t)
			})
		}
	}
}

// A universe says what may happen.
type universe struct {
	name   string
	family string // NAME<PARENT; + is made meanwhile

	rounds     []int // that peers may open, of each communicator
	raises     []int // by this rank's program
	waits      int   // that its program may begin
	asks       bool  // it calls Err
	closes     bool  // and closes the last communicator
	tryAll     bool  // there is a TryAll on the last communicator
	corrupts   bool  // what peers raise on the world is a corruption of rank 1
	worsens    bool  // peers may unwind in an open round of the world
	everywhere bool  // all members have their sides of all communicators
	unwinds    bool  // the program unwinds in place of raising on the last communicator
	tries      bool  // there is a Try on each communicator
}

// A step is something that happens.
type step struct {
	what string
	comm int
}

func (u *universe) explore(t *testing.T) {
	type node struct {
		from *node
		step
	}
	path := func(n *node) (steps []step) {
		for ; n.from != nil; n = n.from {
			steps = append(steps, n.step)
		}
		slices.Reverse(steps)
		return steps
	}
	limit := 6000
	if testing.Short() || buildtags.Race {
		limit = 1000
	}
	seen := map[string]bool{}
	queue := []*node{{}}
	for i := 0; i < len(queue) && len(queue) < limit; i++ {
		steps := path(queue[i])
		at := u.play(t, steps)
		for _, s := range at.enabled() {
			next := u.play(t, append(slices.Clone(steps), s))
			if key := next.key(); !seen[key] {
				seen[key] = true
				queue = append(queue, &node{queue[i], s})
				next.finish(len(queue))
			}
		}
	}
	t.Logf("%d states", len(seen))
	if len(queue) >= limit {
		t.Logf("and more, longer than %d steps", len(path(queue[len(queue)-1]))-1)
	}
}

func (w *world) enabled() (steps []step) {
	can := func(what string, m *model) { steps = append(steps, step{what, m.index}) }
	if len(w.outputs) > 0 {
		can("carry", w.models[0])
	}
	for _, m := range w.models {
		if !m.made() {
			if w.waiting < 0 && m.up.corrupt == nil {
				can("make", m)
			}
			continue
		}
		if len(m.told) > 0 {
			can("tell", m)
		}
		if m.rounds > 0 && !m.started && !m.final {
			can("peer raises", m)
		}
		if w.worsens && m.index == 0 && m.started && !m.worse {
			can("peer unwinds", m)
		}
		if m.canResolve() {
			can("resolve", m)
			if len(m.mine) > m.inTime {
				can("resolve with late", m)
			}
		}
		if w.waiting < 0 && !m.closed {
			if m.raises > 0 {
				can("raise", m)
			}
			if w.waits > 0 {
				can("wait", m)
			}
			if w.asks {
				can("err", m)
			}
			can(w.tells(), m)
		}
	}
	last := w.models[len(w.models)-1]
	if w.waiting >= 0 {
		can("leave", w.models[w.waiting])
	}
	if w.closes && w.waiting < 0 && !last.closed {
		can("close", last)
	}
	if w.tryAll {
		switch w.voted {
		case "":
			can("ask", last)
		case "asked":
			if last.finds() == nil { // else the barrier's Wait tells of it
				can("confirm", last)
			}
		case "confirmed":
			can("counted", last)
		}
	}
	return steps
}

// canResolve says whether the channel can have the verdict.
func (m *model) canResolve() bool { return m.started && m.consented && !m.final }
