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
	try       []*Scope // one on each communicator
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
	inTime    int       // so many were before the consent
	final     bool

	// The rank.
	everywhere bool
	noticed    bool
	fatal      bool // as corrupt
	joined     bool
	own        int // raised, and not resolved
	held       int // so many of them have waited for votes to be counted
	settling   *heard
	later      []func()
	moving     int
	untold     []*heard
	corrupt    *heard
	all        []*heard
}

// heard is a verdict.
type heard struct {
	by      *model
	corrupt bool
	known   bool // a corruption, which a look has told
	told    int
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
	w.Face = func(*Error) {}
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

// enter1 makes the communicator. That with the name whole has not rank 1.
func (w *world) enter1(m *model) {
	var members []int
	if m.name() == "whole" {
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
	w.try = append(w.try, m.Open(guard, false, "try on "+m.name()))
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
