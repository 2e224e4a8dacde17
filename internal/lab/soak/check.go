package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// Invariants have to hold in a team once no more events can happen. Conditions that concern one
// rank alone are checked at that rank, when events happen.
var invariants = []invariant{
	{"P1, H1: survivors end", (*team).ends},
	{"P1, P2: survivors get the same verdicts", (*team).resolve},
	{"P2: every report is in one verdict", (*team).report},
	{"P1: every verdict is told once", (*team).tell},
	{"D1: corruptions reach what has lost a member", (*team).bequeath},
	{"H2: a verdict has a cause", (*team).haveCauses},
	{"H5: agreements are uniform and valid", (*team).agree},
	{"H5: all or none", (*team).allOrNone},
	{"H4: a revoke reaches all", (*team).revoke},
	{"P3: no message is lost", (*team).communicate},
}

// Afterwards are the invariants that have to hold once all ranks have closed their communicators.
var afterwards = []invariant{
	{"H6: what all have closed is forgotten", (*team).forget},
}

type invariant struct {
	name  string
	holds func(*team) error
}

// survivors returns the living members, and whether all of them have made their sides. A side may
// be missing because an error of the parent came first. Then a program can expect only that nothing
// is wrong.
func (t *team) survivors() (living []*member, complete bool) {
	complete = true
	for r, m := range t.members {
		switch {
		case !t.lives(r):
		case m == nil:
			complete = false
		default:
			living = append(living, m)
		}
	}
	return living, complete
}

// isWhole reports whether all living ranks have made their sides of the team, and of all teams that
// it was made from.
func (t *team) isWhole() bool {
	_, complete := t.survivors()
	return complete && (t.parent == nil || t.parent.isWhole())
}

func (t *team) ends() error {
	living, complete := t.survivors()
	whole := t.isWhole()
	for _, m := range living {
		for r := range t.ranks {
			if !t.lives(r) && t.ulfm && !slices.Contains(m.told, r) {
				return fmt.Errorf("rank %d was never told that %d of its team is dead", m.world, r)
			}
		}
		switch waiting := m.ch.Waiting(); {
		case !complete:
		case m.open || waiting != "" && !m.left:
			return fmt.Errorf("rank %d hangs: %s", m.world, waiting)
		case whole && m.Idle() != nil:
			return fmt.Errorf("rank %d, whose error channel is idle: %w", m.world, m.Idle())
		case t.ulfm && !m.left && m.agreed(m.epoch) < t.calls:
			return fmt.Errorf("rank %d has %d agreements in its last epoch, expected %d", m.world, m.agreed(m.epoch), t.calls)
		}
	}
	return nil
}

func (m *member) agreed(e transport.Epoch) (n int) {
	for _, d := range m.decided {
		if d.id.Epoch == e && !d.id.Creates {
			n++
		}
	}
	return n
}

func (t *team) resolve() error {
	living, complete := t.survivors()
	for _, m := range living {
		first := living[0]
		if complete && len(m.verdicts) != len(first.verdicts) {
			return fmt.Errorf("rank %d has %d, rank %d %d", first.world, len(first.verdicts), m.world, len(m.verdicts))
		}
		for i, v := range m.verdicts[:min(len(m.verdicts), len(first.verdicts))] {
			if w := first.verdicts[i]; v != w && !equal(v, w) {
				return fmt.Errorf("rank %d has %s, rank %d %s", first.world, show(w), m.world, show(v))
			}
		}
	}
	return nil
}

func show(v *errchan.Verdict) string {
	var reports []string
	for _, r := range v.Reports {
		reports = append(reports, string(r.Data))
	}
	return fmt.Sprintf("{round %d, corrupt %t, reports %s, dead %d}", v.Round, v.Corrupt, reports, v.Dead)
}

func equal(v, w *errchan.Verdict) bool {
	return v.Round == w.Round && v.Corrupt == w.Corrupt && slices.Equal(v.Dead, w.Dead) &&
		slices.EqualFunc(v.Reports, w.Reports, func(a, b errchan.Report) bool {
			return a.Rank == b.Rank && a.Corrupt == b.Corrupt && bytes.Equal(a.Data, b.Data)
		})
}

func reportsOf(v *errchan.Verdict, rank int) (n int) {
	for _, r := range v.Reports {
		if r.Rank == rank {
			n++
		}
	}
	return n
}

// report holds if the reports of each rank are those that it raised, in that order, and if none of
// a survivor's reports is missing unless the last verdict is final.
func (t *team) report() error {
	living, _ := t.survivors()
	if len(living) == 0 {
		return nil
	}
	seen := make([]int, len(t.ranks))
	for _, v := range living[0].verdicts {
		for _, r := range v.Reports {
			seen[r.Rank]++
			if m := t.members[r.Rank]; m == nil || seen[r.Rank] > len(m.reports) || !bytes.Equal(r.Data, label(r.Rank, seen[r.Rank])) {
				return fmt.Errorf("round %d has %q of %d of the team, expected its number %d", v.Round, r.Data, r.Rank, seen[r.Rank])
			} else if latest := m.reports[seen[r.Rank]-1]; v.Round > uint64(latest) {
				return fmt.Errorf("round %d has %q of %d of the team, expected in round %d or before", v.Round, r.Data, r.Rank, latest)
			}
		}
	}
	for _, m := range living {
		if last := living[0].final; seen[m.rank] < len(m.reports) && !last && !m.open {
			return fmt.Errorf("rank %d raised %d, %d are in verdicts", m.world, len(m.reports), seen[m.rank])
		}
	}
	return nil
}

// tell holds if a program that has looked until it found nothing more was told of each verdict
// once. If the communicator is corrupted, nothing else need be told of it (C4).
func (t *team) tell() error {
	if !t.isWhole() {
		return nil
	}
	living, _ := t.survivors()
	for _, m := range living {
		if m.left {
			continue
		}
		for t.err == nil {
			found, e, pending := m.Look(ledger.Take)
			if pending && found != ledger.Verdict {
				return fmt.Errorf("rank %d hangs", m.world)
			}
			if found != ledger.Verdict {
				break
			}
			hear(e)
			if m.IsCorrupted() && e.Corrupt() {
				break // every look finds it again
			}
		}
		for i, h := range m.heard {
			if h.told == 0 && !m.IsCorrupted() {
				return fmt.Errorf("rank %d is not told of %s", m.world, show(m.verdicts[i]))
			}
		}
		if m.final && !m.IsCorrupted() {
			return fmt.Errorf("rank %d does not know of %s", m.world, show(m.verdicts[len(m.verdicts)-1]))
		}
	}
	return nil
}

// bequeath holds if a member is corrupted from above exactly if a team above it has lost a rank of
// the member's team.
func (t *team) bequeath() error {
	living, _ := t.survivors()
	for _, m := range living {
		corrupted := m.final
		for a := m.over; a != nil; a = a.over {
			if a.final && !slices.Contains(m.spared, a) {
				v := a.verdicts[len(a.verdicts)-1]
				lost := func(r int) bool { return slices.Contains(t.ranks, a.ranks[r]) }
				corrupted = corrupted || slices.ContainsFunc(v.Dead, lost) ||
					slices.ContainsFunc(v.Reports, func(r errchan.Report) bool { return r.Corrupt && lost(r.Rank) })
			}
		}
		if m.IsCorrupted() != corrupted {
			return fmt.Errorf("rank %d: corrupted %t, expected %t", m.world, m.IsCorrupted(), corrupted)
		}
	}
	return nil
}

func (t *team) haveCauses() error {
	living, complete := t.survivors()
	for _, m := range living {
		for _, v := range m.verdicts {
			corrupt := len(v.Dead) > 0 || slices.ContainsFunc(v.Reports, func(r errchan.Report) bool { return r.Corrupt })
			if corrupt != v.Corrupt || len(v.Dead)+len(v.Reports) == 0 {
				return fmt.Errorf("rank %d has %s", m.world, show(v))
			}
			for _, r := range v.Dead {
				if t.lives(r) && !t.isGone(r) {
					return fmt.Errorf("rank %d of the team lives, rank %d has %s", r, m.world, show(v))
				}
			}
		}
		if complete && m.lost && !m.final {
			return fmt.Errorf("rank %d needs a dead rank, and was told of no verdict", m.world)
		}
	}
	return nil
}

func (t *team) agree() error {
	living, _ := t.survivors()
	first := make(map[errchan.Agreement]decided)
	for _, m := range living {
		for _, d := range m.decided {
			f, ok := first[d.id]
			if !ok {
				first[d.id] = d
				if err := t.isValid(d); err != nil {
					return err
				}
			} else if f.Decision != d.Decision && (f.Flag != d.Flag || !slices.Equal(f.Dead, d.Dead) || !slices.Equal(f.Unacked, d.Unacked)) {
				return fmt.Errorf("%v: rank %d has %+v, another %+v", d.id, m.world, *d.Decision, *f.Decision)
			}
		}
	}
	return nil
}

// isValid compares a survivor's decision with the proposals. The decision contains the proposals of
// all survivors that have not left, and may contain any of the others.
func (t *team) isValid(d decided) error {
	most, least := -1, -1
	somebody, everybody := make(map[int]bool), make(map[int]int) // who has acknowledged a death
	proposals := t.proposals[d.id]
	for _, p := range proposals {
		least &= p.Flag
		for _, r := range p.Acked {
			everybody[r]++
		}
		if !t.lives(p.by.rank) || p.by.left {
			continue
		}
		most &= p.Flag
		for _, r := range d.Dead {
			if !slices.Contains(p.Acked, r) {
				somebody[r] = true
			}
		}
		for _, r := range p.knew {
			if !slices.Contains(d.Dead, r) {
				return fmt.Errorf("%v: rank %d had been told that %d of its team is dead, but %+v", d.id, p.by.world, r, *d.Decision)
			}
		}
	}
	if d.Flag&^most != 0 || least&^d.Flag != 0 {
		return fmt.Errorf("%v: flag %x, expected %x of survivors, of all %x", d.id, d.Flag, most, least)
	}
	for _, r := range d.Dead {
		unacked := slices.Contains(d.Unacked, r)
		if unacked != somebody[r] && unacked == (everybody[r] == len(proposals)) {
			return fmt.Errorf("%v: %+v, but that %d of the team is dead was acknowledged by %d of %d", d.id, *d.Decision, r, everybody[r], len(proposals))
		}
	}
	return nil
}

// allOrNone holds if an agreement that ended with a decision at one survivor did so at all
// survivors that proposed to it and whose programs have not ended.
func (t *team) allOrNone() error {
	living, _ := t.survivors()
	has := make(map[*member]map[errchan.Agreement]bool)
	for _, m := range living {
		has[m] = make(map[errchan.Agreement]bool)
		for _, d := range m.decided {
			has[m][d.id] = true
		}
	}
	for _, m := range living {
		for _, d := range m.decided {
			for _, p := range t.proposals[d.id] {
				if t.lives(p.by.rank) && !p.by.left && !has[p.by][d.id] && !(d.id.Creates && p.by.IsRevoked()) {
					return fmt.Errorf("%+v: rank %d has %+v, rank %d proposed and has no decision", d.id, m.world, *d.Decision, p.by.world)
				}
			}
		}
	}
	return nil
}

func (t *team) revoke() error {
	living, complete := t.survivors()
	for _, m := range living {
		if first := living[0]; complete && m.revokes != first.revokes {
			return fmt.Errorf("rank %d was told %d times, rank %d %d times", first.world, first.revokes, m.world, m.revokes)
		}
	}
	return nil
}

// communicate holds if all messages between two survivors that are in the same epoch, sent in that
// epoch, have arrived.
func (t *team) communicate() error {
	living, _ := t.survivors()
	for _, m := range living {
		for _, r := range slices.Sorted(maps.Keys(m.sent)) {
			to := t.members[r]
			if to != nil && t.lives(r) && m.epoch == to.epoch && !m.IsRevoked() && !to.IsRevoked() && m.sent[r] != to.got[m.rank] {
				return fmt.Errorf("rank %d sent %d messages, rank %d got %d", m.world, m.sent[r], to.world, to.got[m.rank])
			}
		}
	}
	return nil
}
