package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/errchan"
)

// TestUniverse tries all that can happen at one rank of a small family, in every
// order: what its program does, when its channels tell of rounds and verdicts, and
// when the driver carries out Complete and Advance. A model beside the ledger, which
// knows the rules in their simplest words, says at each step what has to come of it.
// From each state that is reached, all open rounds are brought to their ends, which
// has to tell every verdict once and leave nothing open.
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
		{name: "corruption", family: "world gone<world whole<world",
			rounds: []int{1, 1, 0}, raises: []int{1, 0, 0}, waits: 2, corrupts: true},
		{name: "corruption of an open round", family: "world child<world",
			rounds: []int{2, 1}, raises: []int{1, 0}, waits: 2, worsens: true},
		{name: "unwinding", family: "world child<world",
			rounds: []int{1, 1}, raises: []int{1, 1}, waits: 2, unwinds: true, everywhere: true},
	} {
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			u.explore(t)
		})
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
	w.Face = func(*Error) error { return nil }
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
			can("look", m)
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
			can("confirm", last)
		case "confirmed":
			can("counted", last)
		}
	}
	return steps
}

// canResolve says whether the channel can have the verdict.
func (m *model) canResolve() bool { return m.started && m.consented && !m.final }

func (w *world) step(s step) {
	w.steps = append(w.steps, s)
	if w.verbose {
		fmt.Fprintf(w.text, "> %s %s\n", s.what, w.models[s.comm].name())
	}
	m := w.models[s.comm]
	nobody := func(*model) bool { return false }
	w.mayJoin = nobody
	switch s.what {
	case "carry":
		w.carry1()
	case "make":
		w.enter1(m)
	case "tell":
		tell := m.told[0]
		m.told, m.says = m.told[1:], m.says[1:]
		tell()
	case "peer raises":
		m.rounds--
		m.byPeer = true
		w.start(m, 1)
	case "peer unwinds":
		m.byPeer, m.worse = true, true
		w.notice(m, 1, true)
	case "resolve":
		w.resolve(m, m.inTime)
	case "resolve with late":
		w.resolve(m, len(m.mine))
	case "raise":
		m.raises--
		unwinds := w.unwinds && m == w.models[len(w.models)-1]
		w.mayJoin = func(o *model) bool { return o == m && !w.holding() }
		broken := m.corrupt != nil
		if r := m.Raise(&Raised{Data: []byte("own"), Corrupt: unwinds}); (r == nil) != broken {
			w.failf("%s: raised %v", m.name(), r)
		} else if r != nil {
			m.own++
			if w.holding() {
				m.held++
			}
		}
	case "wait":
		w.waits--
		w.waiting = m.index
		w.mayJoin = w.attends
		w.first = w.testRank.enter(m.Comm)
	case "leave":
		w.Leave(w.first)
		w.waiting = -1
	case "err":
		want := m.finds()
		w.mayJoin = func(*model) bool { return want == nil && !w.holding() }
		_, e := w.testRank.err(m.Comm)
		w.found(m, want, e)
		if want != nil && want.corrupt && m.corrupt != nil {
			m.corrupt.known = true
		}
	case "look":
		w.look(m)
	case "close":
		m.closed, m.untold = true, nil
		w.mayJoin = func(o *model) bool { return o == m }
		m.Close()
	case "ask":
		w.voted = "asked"
		w.vote = m.Ask("vote")
	case "confirm":
		w.voted = "counted"
		if confirmed := w.vote.Confirm(); confirmed == w.withdrawn {
			w.failf("confirmed: %t, withdrawn: %t", confirmed, w.withdrawn)
		} else if confirmed {
			w.voted = "confirmed"
		}
	case "counted":
		w.voted = "counted"
		for _, m := range w.models {
			m.held = 0
		}
		w.mayJoin = func(o *model) bool { return w.attends(o) || o.own > 0 }
		w.vote.Counted()
		w.vote.End()
	}
	w.take()
	w.check()
}

// start opens the channel's next round.
func (w *world) start(m *model, by int) {
	m.started = true
	w.notice(m, by, w.corrupts && m.index == 0 && by == 1)
}

// notice has the channel tell of the round.
func (w *world) notice(m *model, by int, corrupt bool) {
	round := m.seq
	m.says = append(m.says, fmt.Sprintf("noticed %d %t", by, corrupt))
	m.told = append(m.told, func() { w.noticed(m, round, by, corrupt) })
}

func (w *world) noticed(m *model, round uint64, by int, corrupt bool) {
	w.mayJoin = func(o *model) bool {
		return w.attends(o) || o == m && (o.closed || o.own > o.held)
	}
	now := func() { m.noticed, m.fatal = true, m.fatal || corrupt }
	if m.settling != nil {
		m.later = append(m.later, now)
	} else {
		now()
	}
	m.Noticed(round, by, corrupt)
}

// resolve ends the channel's round with a verdict that has the first so many of this
// rank's reports.
func (w *world) resolve(m *model, own int) {
	v := &errchan.Verdict{Round: m.seq}
	for _, r := range m.mine[:own] {
		v.Reports = append(v.Reports, errchan.Report{Rank: 0, Data: r.Data, Corrupt: r.Corrupt})
		v.Corrupt = v.Corrupt || r.Corrupt
	}
	if m.byPeer {
		corrupt := w.corrupts && m.index == 0 || m.worse
		v.Reports = append(v.Reports, errchan.Report{Rank: 1, Data: []byte("peer"), Corrupt: corrupt})
		v.Corrupt = v.Corrupt || corrupt
	}
	m.mine = m.mine[own:]
	m.seq++
	m.started, m.byPeer, m.worse, m.consented, m.inTime = false, false, false, false, 0
	m.final = v.Corrupt
	m.says = append(m.says, fmt.Sprintf("resolved %v", v.Reports))
	m.told = append(m.told, func() { w.resolved(m, v, own) })
	if len(m.mine) > 0 && !m.final {
		m.consented, m.inTime = true, len(m.mine)
		w.start(m, 0)
	}
}

func (w *world) resolved(m *model, v *errchan.Verdict, own int) {
	now := func() {
		h := &heard{by: m, corrupt: v.Corrupt}
		m.settling, m.everywhere = h, true
		m.own -= own
		m.moving++
		switch {
		case m.corrupt != nil: // with an ancestor: that is what is told
		case h.corrupt:
			m.corrupt, m.own, m.held = h, 0, 0
		case !m.closed:
			m.untold = append(m.untold, h)
			m.all = append(m.all, h)
		}
	}
	if m.settling != nil {
		m.later = append(m.later, now)
	} else {
		now()
	}
	m.Resolved(v, 0)
}

// carry1 carries out the next Complete or Advance.
func (w *world) carry1() {
	o := w.outputs[0]
	w.outputs = w.outputs[1:]
	m := w.modelOf(o.Comm)
	if o.Action == Advance {
		m.moving--
		m.Moved()
		return
	}
	h := m.settling
	m.noticed, m.fatal, m.joined, m.settling = false, false, false, nil
	if h.corrupt {
		for _, d := range w.models {
			if d.made() && d != m && !d.closed && d.corrupt == nil && slices.Contains(d.lineage(), m) {
				if d.name() == "whole" {
					d.untold = append(d.untold, h)
					d.all = append(d.all, h)
				} else {
					d.corrupt = h
				}
			}
		}
	}
	submitted := m.own > m.held
	w.mayJoin = func(o *model) bool { return w.attends(o) || o == m && (o.closed || submitted) }
	m.Settled()
	// The ledger has advanced, and then heard what has come meanwhile.
	for len(m.later) > 0 && m.settling == nil {
		m.later[0]()
		m.later = m.later[1:]
	}
}

func (w *world) modelOf(c *Comm) *model {
	return w.models[slices.IndexFunc(w.models, func(m *model) bool { return m.Comm == c })]
}

// take takes the ledger's outputs, checks each, and carries out those that no Complete
// or Advance is before.
func (w *world) take() {
	for _, o := range w.Outputs() {
		if w.verbose {
			w.print([]Output{o})
		}
		switch o.Action {
		case Join, Raise:
			m := w.modelOf(o.Comm)
			switch {
			case o.Family == nil && m.joined: // raised after it had joined
			case m.joined:
				w.failf("%s: joins twice", m.name())
			case !w.mayJoin(m):
				w.failf("P2: joins %s, but neither attends nor looks", m.name())
			case len(o.Family) != len(m.Family()):
				w.failf("H5: %s: freezes %s", m.name(), names(o.Family, nil))
			}
			m.joined = true
		case Interrupt:
			if w.ended[o.Scope]++; w.ended[o.Scope] > 1 {
				w.failf("%s: interrupted twice", o.Scope.Owner)
			}
		case Withdraw:
			w.withdrawn = true
		case Advance:
			for i, d := range o.Family {
				n := 0
				for _, a := range w.modelOf(d).lineage() {
					if a.joined && a.Comm != o.Comm {
						n++
					}
				}
				if o.Frozen[i] != (n > 0) && !w.modelOf(d).closed {
					w.failf("H5: %s: frozen %t, %d other rounds are joined", d.Owner, o.Frozen[i], n)
				}
			}
		}
		switch o.Action {
		case Join, Raise, Complete, Advance:
			w.outputs = append(w.outputs, o)
		}
	}
	for len(w.outputs) > 0 {
		o := w.outputs[0]
		m := w.modelOf(o.Comm)
		switch o.Action {
		case Raise:
			m.mine = append(m.mine, o.Raised)
			if !m.started && !m.final {
				w.start(m, 0)
			}
			if !m.consented {
				m.consented, m.inTime = true, len(m.mine)
			}
		case Join:
			if m.started && o.Round == m.seq && !m.consented {
				m.consented, m.inTime = true, len(m.mine)
			}
		default:
			return
		}
		w.outputs = w.outputs[1:]
	}
}

// look is a Wait's that finds its operation done.
func (w *world) look(m *model) {
	want := m.finds()
	if slices.ContainsFunc(m.lineage(), func(a *model) bool { return a.moving > 0 }) {
		want = nil
	}
	_, e, _ := m.Look(Take)
	w.found(m, want, e)
	if want == nil {
		return
	}
	if want != m.corrupt {
		for _, a := range m.lineage() {
			if len(a.untold) > 0 && a.untold[0] == want {
				a.untold = a.untold[1:]
			}
		}
	}
	want.known = want.corrupt
	if want.told++; want.told > 1 && !want.corrupt {
		w.failf("P1: %s: a verdict is told twice", m.name())
	}
}

func (w *world) found(m *model, want *heard, e *Error) {
	if (want == nil) != (e == nil) || want != nil && want.by.Comm != e.Comm {
		w.failf("P1: a look at %s finds %v, the model %v", m.name(), e, want)
	}
}

// check compares the ledger with the model.
func (w *world) check() {
	w.t.Helper()
	if int(w.owing.Load()) != len(w.owed) {
		w.failf("owing %d, owed %d", w.owing.Load(), len(w.owed))
	}
	for i, m := range w.models {
		if !m.made() {
			continue
		}
		joined, needsLook, notice, fatal := 0, m.corrupt != nil || m.closed, false, false
		for _, a := range m.lineage() {
			if a.joined {
				joined++
			}
			notice = notice || a.noticed && a.settling == nil
			fatal = fatal || a.fatal
			needsLook = needsLook || a.pending() || len(a.untold) > 0
		}
		owed := m.noticed && !m.joined
		f, _, pending := m.Look(Peek)
		switch {
		case m.frozen != joined && !m.closed:
			w.failf("H5: %s: frozen %d, %d rounds are joined", m.name(), m.frozen, joined)
		case m.NeedsLook() != needsLook:
			w.failf("%s: needs a look %t, expected %t", m.name(), m.NeedsLook(), needsLook)
		case needsLook != (f != Nothing || pending):
			w.failf("%s: needs a look %t, a look finds %d, pending %t", m.name(), needsLook, f, pending)
		case slices.Contains(w.owed, m.Comm) != owed:
			w.failf("%s: owed %t, expected %t", m.name(), !owed, owed)
		case owed && m.closed:
			w.failf("%s is closed, and has not joined", m.name())
		case owed && m.own > m.held:
			w.failf("%s: raised, and has not joined", m.name())
		case owed && w.attends(m):
			w.failf("D2: the rank attends, and has not joined %s", m.name())
		case notice && m.corrupt == nil && !m.closed && !w.try[i].Ended():
			w.failf("P8: %s: an error is noticed, the Try goes on", m.name())
		case w.guard[i] != nil && (fatal || m.corrupt != nil) && !w.guard[i].Ended():
			w.failf("P8: %s: a corruption is noticed, the Guard goes on", m.name())
		case w.guard[i] != nil && !fatal && m.corrupt == nil && w.guard[i].Ended():
			w.failf("P8: %s: no corruption is noticed, the Guard has ended", m.name())
		case m.joined && m.frozen == 0:
			w.failf("H5: %s: joined, and not frozen", m.name())
		}
		if w.tryAll && i == len(w.models)-1 && w.voted == "asked" && joined > 0 && !w.withdrawn {
			w.failf("P2: a vote is open where a round is joined")
		}
	}
}

// finish brings all to an end, with a program that waits on one of its communicators
// and looks whenever that wait is over.
func (w *world) finish(n int) {
	if w.voted == "confirmed" {
		w.step(step{"counted", len(w.models) - 1})
	}
	for _, m := range w.models {
		m.rounds, m.raises = 0, 0
	}
	on := w.models[n%len(w.models)]
	for progress := true; progress; {
		progress = false
		if !on.made() || on.closed || on.corrupt != nil {
			on = w.models[0]
		}
		do := func(what string, m *model) {
			progress = true
			w.step(step{what, m.index})
		}
		for len(w.outputs) > 0 {
			do("carry", w.models[0])
		}
		for _, m := range w.models {
			for len(m.told) > 0 {
				do("tell", m)
			}
			if m.canResolve() {
				do("resolve", m)
			}
		}
		if w.waiting >= 0 && w.models[w.waiting].finds() != nil {
			do("leave", w.models[w.waiting])
		}
		if w.waiting < 0 && len(w.outputs) == 0 {
			for on.finds() != nil && on.finds() != on.corrupt {
				do("look", on)
			}
			if on.corrupt == nil {
				w.waits++
				progress = progress || w.owing.Load() > 0
				w.step(step{"wait", on.index})
			}
		} else if !progress && w.waiting != on.index {
			do("leave", w.models[w.waiting])
		}
	}
	if w.waiting >= 0 {
		w.step(step{"leave", w.waiting})
	}
	for _, m := range w.models {
		for m.made() && !m.closed && m.finds() != nil && m.finds() != m.corrupt {
			w.step(step{"look", m.index})
		}
	}
	for _, m := range w.models {
		if !m.made() {
			continue
		}
		for _, h := range m.all {
			if h.told != 1 && !m.closed && m.corrupt == nil && !h.corrupt {
				w.failf("P1: %s: a verdict is told %d times", m.name(), h.told)
			}
		}
		over := m.corrupt != nil || slices.ContainsFunc(m.lineage(), func(a *model) bool { return a.corrupt != nil })
		if !over && (m.Comm.open || m.Comm.joined || m.frozen > 0 && !m.closed || m.Comm.moving > 0 || len(m.raised) > 0 || slices.Contains(w.owed, m.Comm)) {
			w.failf("all is over, and %s is: %s", m.name(), w.state(m.Comm))
		}
		if !over && !m.closed && m.NeedsLook() {
			w.failf("all is over, and %s needs a look: %s", m.name(), w.state(m.Comm))
		}
	}
}

// key is all of the state that matters.
func (w *world) key() string {
	var s strings.Builder
	for i, m := range w.models {
		if !m.made() {
			s.WriteString("-\n")
			continue
		}
		fmt.Fprintf(&s, "%s|%v|%d %t %t %t %t %d %d %t|%d %d %d|%t\n", w.state(m.Comm), m.says, m.seq, m.started, m.byPeer,
			m.worse, m.consented, len(m.mine), m.inTime, m.final, m.rounds, m.raises, len(m.later), w.try[i].Ended())
	}
	for _, o := range w.outputs {
		s.WriteString(o.text())
	}
	fmt.Fprintf(&s, "%d %d %s %t", w.waiting, w.waits, w.voted, w.withdrawn)
	for _, o := range w.owed {
		s.WriteString(o.Owner.(string))
	}
	return s.String()
}
