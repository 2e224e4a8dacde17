package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/observe"
)

// A meeting is an act of all ranks whose result no rank has before all have begun it: the
// verdict of a round, or a repair. Times are those of each machine's own clock.
type meeting struct {
	lastBegin, firstEnd map[string]int64
}

// meetingsOf returns the meetings of a run.
func meetingsOf(j job, number int) (all []*meeting) {
	type key struct {
		op, comm, epoch string
		round           uint64
	}
	by := make(map[key]*meeting)
	for f, l := range j.lines(number) {
		t := f.Clock.UnixNano() + l.T
		k, begins := key{l.Op, l.Comm, l.Epoch, l.Round}, false
		switch l.Kind {
		case observe.Join:
			k, begins = key{"round", l.Comm, "", l.Round}, true
		case observe.Verdict:
			k = key{"round", l.Comm, "", l.Round}
		case observe.Repair:
			begins = true
		case observe.Agree, observe.Shrink, observe.Replace:
			if l.Op == "" { // the line of a spare, which did not begin it
				continue
			}
		default:
			continue
		}
		m := by[k]
		if m == nil {
			m = &meeting{make(map[string]int64), make(map[string]int64)}
			by[k] = m
			all = append(all, m)
		}
		if begins {
			if old, known := m.lastBegin[f.Machine]; !known || t > old {
				m.lastBegin[f.Machine] = t
			}
		} else if old, known := m.firstEnd[f.Machine]; !known || t < old {
			m.firstEnd[f.Machine] = t
		}
	}
	return all
}

const unbounded = math.MaxInt64 / 4

// align returns what to add to the clocks of the machines. A meeting that began at b on machine
// i and ended at e on machine k says that offset(i) - offset(k) <= e - b. The shortest paths d
// over these bounds give the range of each difference. Because d satisfies the triangle
// inequality, the middles of the ranges of offset(i) - offset(0) satisfy all bounds together.
func (r *run) align(j job) map[string]int64 {
	for f := range j.lines(r.number) {
		if !slices.Contains(r.machines, f.Machine) {
			r.machines = append(r.machines, f.Machine)
		}
	}
	n := len(r.machines)
	d := make([][]int64, n)
	for i := range d {
		d[i] = slices.Repeat([]int64{unbounded}, n)
		d[i][i] = 0
	}
	for _, m := range meetingsOf(j, r.number) {
		for i, from := range r.machines {
			for k, to := range r.machines {
				b, begun := m.lastBegin[from]
				e, ended := m.firstEnd[to]
				if i != k && begun && ended {
					d[i][k] = min(d[i][k], e-b)
				}
			}
		}
	}
	for via := range n {
		for i := range n {
			for k := range n {
				if d[i][via] < unbounded && d[via][k] < unbounded {
					d[i][k] = min(d[i][k], d[i][via]+d[via][k])
				}
			}
		}
	}
	offsets := make(map[string]int64)
	for i, m := range r.machines {
		up, down := d[i][0], d[0][i]
		switch {
		case i == 0:
		case d[i][i] < 0:
			r.notes = append(r.notes, fmt.Sprintf("machine %s: no offset of its clock fits all events, so it is taken as it is: it runs faster or slower than that of %s, or was set", m, r.machines[0]))
		case up == unbounded || down == unbounded:
			r.notes = append(r.notes, fmt.Sprintf("machine %s: no error or repair tells its clock's offset from that of %s, so it is taken as it is", m, r.machines[0]))
		default:
			offsets[m] = (up - down) / 2
			r.notes = append(r.notes, fmt.Sprintf("machine %s: its clock is moved by %v, which is right within ±%v", m, time.Duration(offsets[m]), time.Duration((up+down+1)/2)))
		}
	}
	return offsets
}
