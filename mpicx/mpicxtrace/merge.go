package main

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/internal/observe"
)

// A job has the files of one job, and its runs.
type job struct {
	files []observe.File
	runs  []int // numbers of the runs, ascending
}

// lines returns the lines of a run, with the files in which they are.
func (j job) lines(run int) iter.Seq2[*observe.File, observe.Event] {
	return func(yield func(*observe.File, observe.Event) bool) {
		for i := range j.files {
			for _, l := range j.files[i].Lines {
				if l.Run == run && !yield(&j.files[i], l) {
					return
				}
			}
		}
	}
}

// jobsOf returns the jobs, in the order in which they began. If the launcher has not named
// them, as MPICH's does not, a job begins when a rank begins that the job before already has.
func jobsOf(files []observe.File) (jobs []job) {
	files = slices.SortedStableFunc(slices.Values(files), func(a, b observe.File) int { return a.Clock.Compare(b.Clock) })
	number, begun := make(map[string]int), make(map[string]map[int]bool)
	for _, f := range files {
		if len(f.Lines) == 0 { // it had no rank
			continue
		}
		n, known := number[f.Job]
		first := firstRanks(f)
		if !known || slices.ContainsFunc(first, func(rank int) bool { return begun[f.Job][rank] }) {
			n = len(jobs)
			number[f.Job], begun[f.Job] = n, make(map[int]bool)
			jobs = append(jobs, job{})
		}
		for _, rank := range first {
			begun[f.Job][rank] = true
		}
		j := &jobs[n]
		j.files = append(j.files, f)
		for _, l := range f.Lines {
			if !slices.Contains(j.runs, l.Run) {
				j.runs = append(j.runs, l.Run)
			}
		}
		slices.Sort(j.runs)
	}
	return jobs
}

// firstRanks returns the ranks of a process in its first Run.
func firstRanks(f observe.File) (ranks []int) {
	for _, l := range f.Lines {
		if l.Run == 1 && l.Kind == observe.Start {
			ranks = append(ranks, l.Rank)
		}
	}
	return ranks
}

// An event is a line, with its time in the whole job.
type event struct {
	observe.Event
	at      int64 // nanoseconds after the first event
	follows bool  // of a fault: the rank has passed on an error of a communicator, as one of another
}

// An operation is an operation in which a rank was blocked.
type operation struct {
	rank       int
	name       string
	begin, end int64
	open       bool // it has not ended, and the file ends at end
}

// A rank is a rank of the job, and has a track.
type rank struct {
	id     int
	rescue string // "spare" or "fresh rank"; "": neither
	as     int    // rank in the newest communicator, if it is a spare or fresh, and was taken; else -1
	begin  int64  // when it began
	last   int64  // when it had its last event
	ended  bool   // its program has ended; it may then count as dead, but has not died
}

const fresh = "fresh rank"

func (r *rank) String() string {
	switch {
	case r.rescue != "" && r.as >= 0:
		return fmt.Sprintf("%s %d, rank %d", r.rescue, r.id, r.as)
	case r.rescue != "":
		return fmt.Sprintf("%s %d", r.rescue, r.id)
	}
	return fmt.Sprintf("rank %d", r.id)
}

// A run is one run of a job, merged.
type run struct {
	number     int
	begin      time.Time
	ranks      []*rank // ascending
	events     []event // by time, without operations
	operations []operation
	machines   []string
	notes      []string // on clocks, and on what is missing
}

// merge merges the lines of a run.
func merge(j job, number int) *run {
	r := &run{number: number}
	offsets := r.align(j)
	first := int64(math.MaxInt64)
	at := func(f *observe.File, l observe.Event) int64 {
		return f.Clock.UnixNano() + offsets[f.Machine] + l.T
	}
	for f, l := range j.lines(number) {
		first = min(first, at(f, l)-l.For)
	}
	r.begin = time.Unix(0, first)
	ranks := make(map[int]*rank)
	type id struct {
		file string
		wait int64
	}
	open := make(map[id]operation)
	for f, l := range j.lines(number) {
		t := at(f, l) - first
		k := ranks[l.Rank]
		if k == nil {
			k = &rank{id: l.Rank, as: -1}
			ranks[l.Rank] = k
		}
		k.last = max(k.last, t)
		switch l.Kind {
		case observe.Wait:
			open[id{f.Name, l.ID}] = operation{l.Rank, l.Op, t, 0, true}
			continue
		case observe.Waited:
			delete(open, id{f.Name, l.ID})
			r.operations = append(r.operations, operation{l.Rank, l.Op, t - l.For, t, false})
			continue
		case observe.Start:
			k.begin = t
			switch {
			case l.Spare:
				k.rescue = "spare"
			case l.Fresh:
				k.rescue = fresh
			}
		case observe.Replace:
			k.as = *l.As
		case observe.End:
			k.ended = true
		case observe.Repair:
			continue
		}
		r.events = append(r.events, event{Event: l, at: t})
	}
	slices.SortStableFunc(r.events, byTime)
	for _, o := range open { // of a rank that was killed
		o.end = ranks[o.rank].last
		r.operations = append(r.operations, o)
	}
	r.ranks = slices.SortedFunc(maps.Values(ranks), func(a, b *rank) int { return cmp.Compare(a.id, b.id) })
	r.tidy()
	slices.SortStableFunc(r.events, byTime)
	died := make(map[int]int64)
	for _, e := range r.events {
		if e.Kind == observe.Dies {
			died[e.Rank] = e.at
		}
	}
	for i := range r.operations {
		o := &r.operations[i]
		if at, known := died[o.rank]; known { // other goroutines may have been blocked
			o.begin, o.end = min(o.begin, at), min(o.end, at)
		}
	}
	slices.SortFunc(r.operations, func(a, b operation) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end), cmp.Compare(a.rank, b.rank))
	})
	return r
}

func byTime(a, b event) int { return cmp.Compare(a.at, b.at) }

// tidy adds the deaths of ranks that could not record them, with the time of the last event
// that they recorded. It removes events that say nothing new: the second news of a death, the
// death of a rank whose program has ended, and a rank's notice to itself after its own fault.
func (r *run) tidy() {
	said, dead := make(map[int]bool), make(map[int]bool)
	for _, e := range r.events {
		switch e.Kind {
		case observe.Dies, observe.End:
			said[e.Rank] = true
		case observe.Death:
			dead[*e.By] = true
		}
	}
	type of struct {
		rank, by int
		comm     string
		round    uint64
	}
	known, own := make(map[of]bool), make(map[of]bool)
	r.events = slices.DeleteFunc(r.events, func(e event) bool {
		switch e.Kind {
		case observe.Dies:
			return r.ended(e.Rank)
		case observe.Fault:
			own[of{e.Rank, 0, e.Comm, e.Round}] = true
		case observe.Death:
			k := of{rank: e.Rank, by: *e.By}
			defer func() { known[k] = true }()
			return known[k]
		case observe.Notice:
			return *e.By == e.Rank && own[of{e.Rank, 0, e.Comm, e.Round}]
		}
		return false
	})
	for _, k := range r.ranks {
		if dead[k.id] && !said[k.id] {
			r.events = append(r.events, event{Event: observe.Event{Kind: observe.Dies, Rank: k.id, Text: "killed; this is its last event"}, at: k.last})
		}
	}
}

// kind returns the number of ranks that are spares, or fresh, or, for "", neither.
func (r *run) kind(rescue string) (n int) {
	for _, k := range r.ranks {
		if k.rescue == rescue {
			n++
		}
	}
	return n
}

// rescue returns what takes the places of dead ranks.
func (r *run) rescue() string {
	if r.kind(fresh) > 0 {
		return fresh
	}
	return "spare"
}

// ended says whether the program of a rank has ended.
func (r *run) ended(id int) bool {
	return slices.ContainsFunc(r.ranks, func(k *rank) bool { return k.id == id && k.ended })
}
