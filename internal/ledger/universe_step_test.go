package ledger

import (
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
)

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

// resolve ends the channel's round with a verdict that has the first own of this rank's reports.
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

// take takes the ledger's outputs, checks each, and carries out those that no Complete
// or Advance is before.
func (w *world) take() {
	for _, o := range w.Outputs() {
		if w.verbose {
			w.print([]Output{o})
		}
		w.checkOutput(&o)
		switch o.Action {
		case Join, Raise, Complete, Advance:
			w.outputs = append(w.outputs, o)
		}
	}
	for len(w.outputs) > 0 && w.tellChannel(&w.outputs[0]) {
		w.outputs = w.outputs[1:]
	}
}

// tellChannel has the channel hear of a Raise or a Join, and says whether it is one.
func (w *world) tellChannel(o *Output) bool {
	m := w.modelOf(o.Comm)
	joins := o.Action == Raise
	switch o.Action {
	case Raise:
		m.mine = append(m.mine, o.Raised)
		if !m.started && !m.final {
			w.start(m, 0)
		}
	case Join:
		joins = m.started && o.Round == m.seq
	default:
		return false
	}
	if joins && !m.consented {
		m.consented, m.inTime = true, len(m.mine)
	}
	return true
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
