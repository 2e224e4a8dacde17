package main

import (
	"cmp"
	"slices"

	"github.com/mpicx/go-mpicx/internal/observe"
)

// An incident is an error and what follows it, until the next error: its events, and how each
// rank has continued.
type incident struct {
	run    *run
	events []event
	ranks  []*rank           // those that had begun by its end
	after  map[int]operation // the first operation of each rank that has continued
	begin  int64             // time of the fault
	end    int64             // time when the last rank has continued
}

// isOfTrouble says whether an event belongs to errors and repairs.
func isOfTrouble(k observe.Kind) bool {
	return k != observe.Start && k != observe.End && k != observe.Mark && k != observe.Stop && k != observe.Drop && k != observe.Agree
}

// incidents finds the errors of a run. An error begins with a fault or a death that does not
// belong to an open error: its round is not known, and the error before has ended with its
// epoch. Events of a round belong to the error in which the round began, even if the next error
// has begun. A fault that follows from a corruption belongs to that: the rank has neither repaired
// anything since, nor been blocked in an operation, and passes it on to another communicator.
func (r *run) incidents() (all []*incident) {
	type round struct {
		comm string
		n    uint64
	}
	rounds, dead := make(map[round]*incident), make(map[int]bool)
	corrupted := make(map[int]int64) // when a rank was told of a corruption that it has not repaired
	over := true
	for _, e := range r.events {
		begins := false
		switch e.Kind {
		case observe.Fault:
			since, unrepaired := corrupted[e.Rank]
			e.follows = unrepaired && !r.operates(e.Rank, since, e.at)
			begins = rounds[round{e.Comm, e.Round}] == nil && !e.follows
		case observe.Verdict:
			if e.Final {
				corrupted[e.Rank] = e.at
			}
		case observe.Shrink, observe.Replace:
			delete(corrupted, e.Rank)
		case observe.Dies:
			begins = !dead[e.Rank]
			dead[e.Rank] = true
		case observe.Death:
			begins = !dead[*e.By]
			dead[*e.By] = true
		case observe.Revoke, observe.Notice:
			begins = len(all) == 0
		}
		if begins && over {
			all = append(all, &incident{run: r, begin: e.at})
			over = false
		}
		if len(all) == 0 || e.Kind == observe.End || e.Kind == observe.Start && !e.Fresh {
			continue
		}
		last := all[len(all)-1]
		of := last
		switch k := (round{e.Comm, e.Round}); e.Kind {
		case observe.Fault, observe.Notice:
			if rounds[k] == nil {
				rounds[k] = last
			}
			of = rounds[k]
		case observe.Join, observe.Verdict, observe.Epoch:
			of = cmp.Or(rounds[k], last)
		}
		of.events = append(of.events, e)
		over = over || e.Kind == observe.Epoch && of == last
	}
	all = slices.DeleteFunc(all, (*incident).isNothing)
	for i, t := range all {
		limit := int64(unbounded)
		if i+1 < len(all) {
			limit = all[i+1].begin
		}
		t.goOn(limit)
	}
	return all
}

// operates says whether a rank begins to be blocked in an operation of its program, in a range of
// time.
func (r *run) operates(rank int, from, to int64) bool {
	return slices.ContainsFunc(r.operations, func(o operation) bool {
		return o.rank == rank && o.begin >= from && o.begin < to && !isRepair(o.name)
	})
}

// isRepaired says whether ranks have repaired a communicator, or restored a checkpoint.
func (t *incident) isRepaired() bool {
	return slices.ContainsFunc(t.events, func(e event) bool {
		return e.Kind == observe.Shrink || e.Kind == observe.Replace || e.Kind == observe.Restore
	})
}

// isNothing says whether ranks have only learned of programs that have ended.
func (t *incident) isNothing() bool {
	return !slices.ContainsFunc(t.events, func(e event) bool {
		return isOfTrouble(e.Kind) && !(e.Kind == observe.Death && t.run.ended(*e.By))
	})
}

// goOn finds the first operation of each rank after the incident. Operations from limit on
// belong to the next incident.
func (t *incident) goOn(limit int64) {
	t.after = make(map[int]operation)
	last := make(map[int]int64)
	for _, e := range t.events {
		if isOfTrouble(e.Kind) {
			last[e.Rank] = e.at
			t.end = max(t.end, e.at)
		}
	}
	for _, o := range t.run.operations {
		begin, hit := last[o.rank]
		if _, known := t.after[o.rank]; !hit || known || o.begin < begin || o.begin >= limit || o.open || isRepair(o.name) || t.died(o.rank) {
			continue
		}
		t.after[o.rank] = o
		t.end = max(t.end, o.end)
	}
	t.events = slices.DeleteFunc(t.events, func(e event) bool { return e.at > t.end })
	t.ranks = slices.DeleteFunc(slices.Clone(t.run.ranks), func(k *rank) bool { return k.begin > t.end })
}

// died says whether the rank has died.
func (t *incident) died(rank int) bool {
	_, found := t.at(rank, observe.Dies)
	return found
}

// at returns when the rank had its first event of a kind, after the fault.
func (t *incident) at(rank int, kind observe.Kind) (after int64, found bool) {
	i := slices.IndexFunc(t.events, func(e event) bool { return e.Rank == rank && e.Kind == kind })
	if i < 0 {
		return 0, false
	}
	return t.events[i].at - t.begin, true
}

// arrows returns the notices from one rank to another.
func (t *incident) arrows() (all [][2]event) {
	for _, e := range t.events {
		if e.Kind != observe.Notice || *e.By == e.Rank {
			continue
		}
		i := slices.IndexFunc(t.events, func(o event) bool {
			return o.Rank == *e.By && o.Comm == e.Comm && o.Round == e.Round && (o.Kind == observe.Notice || o.Kind == observe.Fault)
		})
		if i >= 0 {
			from := t.events[i]
			from.at = min(from.at, e.at) // it may send before it tells itself
			all = append(all, [2]event{from, e})
		}
	}
	slices.SortFunc(all, func(a, b [2]event) int { return cmp.Compare(a[0].at, b[0].at) })
	return all
}
