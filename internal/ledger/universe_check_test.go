package ledger

import (
	"fmt"
	"slices"
	"strings"
)

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
		case w.tries && notice && m.corrupt == nil && !m.closed && !w.try[i].Ended():
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

// checkOutput compares an output with the model.
func (w *world) checkOutput(o *Output) {
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
			m := w.modelOf(d)
			others := slices.ContainsFunc(m.lineage(), func(a *model) bool { return a.joined && a.Comm != o.Comm })
			if o.Frozen[i] != others && !m.closed {
				w.failf("H5: %s: frozen %t, other rounds are joined: %t", d.Owner, o.Frozen[i], others)
			}
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
			for w.end(on) {
				progress = true
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
		for m.made() && !m.closed && w.end(m) {
			continue
		}
	}
	for _, m := range w.models {
		if !m.made() {
			continue
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

// end ends the error that m has, if there is one, and says whether it got nearer to that.
func (w *world) end(m *model) bool {
	h := m.finds()
	if h == nil || h == m.corrupt {
		return false
	}
	i := h.holder(m).index
	try := w.try[i]
	w.step(step{w.tells(), i})
	return m.finds() != h || w.try[i] != try
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
			m.worse, m.consented, len(m.mine), m.inTime, m.final, m.rounds, m.raises, len(m.later), w.tries && w.try[i].Ended())
		if m.state != nil {
			fmt.Fprintf(&s, "%s %d %t\n", m.state.by.name(), m.state.round, m.owns)
		}
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
