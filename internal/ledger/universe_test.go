package ledger

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/errchan"
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
		if w.tries && !unwinds && w.returns(m, true) != Signal {
			break
		}
		if r := m.Raise(&Raised{Data: []byte("own"), Corrupt: unwinds}); (r == nil) != broken {
			w.failf("%s: raised %v", m.name(), r)
		} else if r != nil {
			m.own++
			m.unwound = m.unwound || unwinds
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
		w.EndWait(w.first)
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
	case "return":
		w.returns(m, false)
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
		if w.tries { // all have said yes
			w.closeTry(m)
		}
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
	v := &errchan.Verdict{Round: m.seq, Settled: agreed}
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
		h := &heard{by: m, round: v.Round, corrupt: v.Corrupt}
		m.settling, m.everywhere = h, true
		m.own -= own
		m.moving++
		switch {
		case m.corrupt != nil: // with an ancestor: that is what is told
		case h.corrupt:
			m.corrupt, m.own, m.held = h, 0, 0
		case !m.closed:
			m.hears(h)
		}
		w.claim(m)
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
				if d.isWhole() {
					d.hears(h)
					w.claim(d)
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
	want.known = want.known || want == m.corrupt
	if !w.tries && want != m.corrupt {
		want.holder(m).over()
	}
}

// returns is the end of a Try whose function has returned, own: with an error of this rank.
func (w *world) returns(m *model, own bool) Step {
	w.look(m) // which a Wait in it has told, and left
	want, next := m.leaves(own)
	e, step := w.try[m.index].Leave(own)
	if step != next {
		w.failf("T2: the end of a Try on %s: step %d, the model %d", m.name(), step, next)
	}
	w.found(m, want, e)
	if step == Return {
		if want != nil && want == m.corrupt {
			want.known = true
		} else if want != m.state { // an ancestor's: the own one is the next Try's
			m.state, m.owns = want, false
		}
		w.closeTry(m)
	}
	return step
}

// closeTry ends the Try on a communicator. The next one begins.
func (w *world) closeTry(m *model) {
	w.try[m.index].Close()
	if m.owns {
		m.over()
	}
	w.openTry(m)
}

func (w *world) found(m *model, want *heard, e *Error) {
	if (want == nil) != (e == nil) || want != nil && (want.by.Comm != e.Comm || want.round != e.Verdict.Round) {
		w.failf("P1: %s finds %v, the model %v", m.name(), e, want)
	}
}
