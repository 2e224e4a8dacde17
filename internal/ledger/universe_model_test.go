package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A world is a state of a universe: the ledger, and the model of all around it.
type world struct {
	*universe
	*testRank
	t       *testing.T
	steps   []step
	verbose bool

	models  []*model
	outputs []Output // to be carried out

	waiting   int // the communicator that the program waits on; -1: it computes
	first     bool
	waits     int
	try       []*Scope // one on each communicator; nil: there are none
	guard     []*Scope // likewise, where peers worsen
	ended     map[*Scope]int
	vote      *Vote
	voted     string // "", "asked", "confirmed", "counted"
	withdrawn bool

	mayJoin func(*model) bool // because of the input that is fed
}

// A model is what there is to know of one communicator.
type model struct {
	*Comm
	index  int
	up     *model
	closed bool
	rounds int
	raises int

	// The channel: what it will tell, in this order, and the round that it is in.
	told      []func()
	says      []string // the same, for key
	seq       uint64
	started   bool // the round is open
	byPeer    bool
	worse     bool // a peer has unwound
	consented bool
	mine      []*Raised // given to the channel, and in no verdict
	inTime    int       // how many of mine were before the consent
	final     bool

	// The rank.
	everywhere bool
	noticed    bool
	fatal      bool // as corrupt
	joined     bool
	own        int // raised, and not resolved
	held       int // how many of own have waited for votes to be counted
	settling   *heard
	later      []func()
	moving     int
	untold     []*heard
	corrupt    *heard
	all        []*heard
	unwound    bool

	// The Try: the error that is its state, which it returns, and whether it ends that.
	state *heard
	owns  bool
}

// heard is a verdict.
type heard struct {
	by      *model
	round   uint64
	corrupt bool
	known   bool // a corruption, which a look has told
}

// failf fails the test, with all that has happened.
func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	if !w.verbose {
		w.universe.replay(w.t, w.steps, true)
	}
	w.t.Fatalf("%s\nafter %v\n%s", fmt.Sprintf(format, args...), w.steps, w.text.String())
}

func (u *universe) play(t *testing.T, steps []step) *world { return u.replay(t, steps, false) }

func (u *universe) replay(t *testing.T, steps []step, verbose bool) *world {
	w := &world{universe: u, testRank: newTestRank(), t: t, verbose: verbose, waiting: -1, waits: u.waits, ended: map[*Scope]int{}}
	w.Face = func(e *Error) { e.Era = -1 }
	w.mayJoin = func(*model) bool { return false }
	for i, name := range strings.Fields(u.family) {
		name, parent, _ := strings.Cut(name, "<")
		m := &model{index: i, rounds: u.rounds[i], raises: u.raises[i]}
		if parent != "" {
			p := slices.IndexFunc(w.models, func(m *model) bool { return m.name() == strings.TrimSuffix(parent, "+") })
			m.up = w.models[p]
		}
		w.models = append(w.models, m)
		m.Comm = &Comm{Owner: name} // not made so far
		if !strings.HasSuffix(parent, "+") {
			w.enter1(m)
		}
	}
	w.take()
	w.outputs = nil
	for _, s := range steps {
		w.step(s)
	}
	return w
}

func (m *model) name() string { return m.Owner.(string) }

func (m *model) made() bool { return m.ledger != nil }

func (m *model) isWhole() bool { return strings.HasPrefix(m.name(), "whole") }

// enter1 makes the communicator. A communicator that is whole does not have rank 1.
func (w *world) enter1(m *model) {
	var members []int
	if m.isWhole() {
		members = []int{0, 2}
	}
	if m.up == nil {
		w.Make(m.Comm, nil, nil, 0, true, members)
	} else {
		w.Make(m.Comm, m.up.Comm, m.up.Comm, m.up.epoch, true, members)
	}
	if w.everywhere {
		m.Everywhere()
		m.everywhere = true
	}
	w.comms = append(w.comms, m.Comm)
	var guard *Scope
	if w.worsens {
		guard = m.Open(nil, true, "guard on "+m.name())
	}
	w.guard = append(w.guard, guard)
	w.try = append(w.try, nil)
	if w.tries {
		w.openTry(m)
	}
}

// openTry begins the next Try.
func (w *world) openTry(m *model) {
	w.try[m.index] = m.Open(w.guard[m.index], false, "try on "+m.name())
	m.state, m.owns = nil, false
	w.claim(m)
	for a := m.up; a != nil && !m.owns; a = a.up {
		if a.owns {
			m.state = a.untold[0]
		}
	}
}

// claim gives the oldest error of m to the Try there, which owns it, and to those below, unless
// they have an error.
func (w *world) claim(m *model) {
	if !w.tries || len(m.untold) == 0 || m.state != nil {
		return
	}
	m.owns = true
	for _, d := range w.models {
		if d.made() && d.state == nil && slices.Contains(d.lineage(), m) {
			d.state = m.untold[0]
		}
	}
}

// leaves says how a Try on m ends.
func (m *model) leaves(own bool) (*heard, Step) {
	all := m.lineage()
	any := func(of func(a *model) bool) bool { return slices.ContainsFunc(all, of) }
	h := m.state
	if h == nil || m.owns {
		if found := m.finds(); found != nil {
			h = found
		}
	}
	switch {
	case any(func(a *model) bool { return a.moving > 0 }):
		return nil, Await
	case h != nil:
		return h, Return
	case m.open() && any(func(a *model) bool { return a.unwound && a.corrupt == nil }):
		return nil, Await
	case own && !any(func(a *model) bool { return a.open() && a.corrupt == nil && (a != m || m.joined) }):
		return nil, Signal
	case any(func(a *model) bool { return a.open() && a.corrupt == nil }):
		return nil, Await
	}
	return nil, Return
}

// hears notes a verdict that the program is to be told.
func (m *model) hears(h *heard) {
	m.untold = append(m.untold, h)
	m.all = append(m.all, h)
}

// over says that the oldest error of m is.
func (m *model) over() {
	h := m.untold[0]
	m.untold = m.untold[1:]
	h.known = h.corrupt
}

// holder returns the communicator of m's lineage that has the error.
func (h *heard) holder(m *model) *model {
	all := m.lineage()
	return all[slices.IndexFunc(all, func(a *model) bool { return slices.Contains(a.untold, h) })]
}

// tells is the step that ends an error.
func (u *universe) tells() string {
	if u.tries {
		return "return"
	}
	return "look"
}

// lineage is m and its ancestors.
func (m *model) lineage() (all []*model) {
	for ; m != nil; m = m.up {
		all = append(all, m)
	}
	return all
}

func (m *model) open() bool { return m.noticed || m.own > 0 }

// isOpen says whether a verdict is to come that looks at what is derived wait for.
func (m *model) pending() bool { return m.open() && m.corrupt == nil || m.moving > 0 }

// finds is what a look at m has to find.
func (m *model) finds() *heard {
	if m.corrupt != nil && m.corrupt.known {
		return m.corrupt // and nothing but that any more (C4)
	}
	all := m.lineage()
	for i := len(all) - 1; i >= 0; i-- {
		if len(all[i].untold) > 0 {
			return all[i].untold[0]
		}
	}
	return m.corrupt
}

// attends says whether the rank has to join m's round because its program waits.
func (w *world) attends(m *model) bool {
	if w.holding() || w.waiting < 0 {
		return false
	}
	on := w.models[w.waiting]
	if on.finds() != nil || on.closed {
		return false // it is about to tell of this
	}
	for _, a := range on.lineage() {
		if a.open() && a.corrupt == nil && a.everywhere { // the wait is bound to end with this
			return a == m || !slices.Contains(a.lineage(), m)
		}
	}
	return true
}

func (w *world) holding() bool { return w.voted == "confirmed" }

func (w *world) modelOf(c *Comm) *model {
	return w.models[slices.IndexFunc(w.models, func(m *model) bool { return m.Comm == c })]
}
