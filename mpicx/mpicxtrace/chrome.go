package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/mpicx/go-mpicx/internal/observe"
)

// A chromeEvent is an event of the Trace Event Format, which Perfetto and chrome://tracing read.
type chromeEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	TS    float64        `json:"ts"` // microseconds
	Dur   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Scope string         `json:"s,omitempty"`
	ID    string         `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// writeChrome writes a run as a trace with a track for each rank. If several goroutines of a
// rank are blocked at the same time, the rank has more tracks.
func writeChrome(w io.Writer, r *run) error {
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	all := []chromeEvent{{Name: "process_name", Phase: "M", Args: map[string]any{"name": "mpicx"}}}
	const most = 1000 // goroutines of a rank
	tid := func(rank, track int) int { return 1 + rank*most + track }
	free := make(map[int][]int64) // by rank and track: when it becomes free
	add := func(rank int, name string) {
		id := tid(rank, len(free[rank]))
		all = append(all,
			chromeEvent{Name: "thread_name", Phase: "M", TID: id, Args: map[string]any{"name": name}},
			chromeEvent{Name: "thread_sort_index", Phase: "M", TID: id, Args: map[string]any{"sort_index": id}})
		free[rank] = append(free[rank], 0)
	}
	for _, k := range r.ranks {
		add(k.id, k.String())
	}
	for _, o := range r.operations {
		i := slices.IndexFunc(free[o.rank], func(at int64) bool { return at <= o.begin })
		if i < 0 {
			i = len(free[o.rank])
			add(o.rank, fmt.Sprintf("rank %d, goroutine %d", o.rank, i+1))
		}
		free[o.rank][i] = o.end
		e := chromeEvent{Name: o.name, Cat: "operation", Phase: "X", TS: us(o.begin), Dur: new(us(o.end - o.begin)), TID: tid(o.rank, i)}
		if o.open {
			e.Args = map[string]any{"end": "none: the rank's process has ended in it"}
		}
		all = append(all, e)
	}
	instant := func(name string, at int64, rank int, args map[string]any) {
		all = append(all, chromeEvent{Name: name, Cat: "error", Phase: "i", TS: us(at), TID: tid(rank, 0), Scope: "t", Args: args})
	}
	for _, e := range r.events {
		args := map[string]any{"rank": e.Rank}
		for name, text := range map[string]string{"comm": e.Comm, "text": e.Text, "epoch": e.Epoch, "operation": e.Op} {
			if text != "" {
				args[name] = text
			}
		}
		if e.By != nil {
			args["of"] = *e.By
		}
		if e.Kind == observe.Notice || e.Kind == observe.Join || e.Kind == observe.Verdict || e.Kind == observe.Fault {
			args["round"], args["final"] = e.Round, e.Final
		}
		name := string(e.Kind)
		if e.Kind == observe.Mark {
			name = e.Text
		}
		instant(name, e.at, e.Rank, args)
	}
	id := 0
	for _, t := range r.incidents() {
		for rank, o := range t.after {
			instant("first operation after", o.begin, rank, map[string]any{"operation": o.name})
		}
		for _, a := range t.arrows() {
			id++
			all = append(all,
				chromeEvent{Name: "notice", Cat: "error", Phase: "s", TS: us(a[0].at), TID: tid(a[0].Rank, 0), ID: strconv.Itoa(id)},
				chromeEvent{Name: "notice", Cat: "error", Phase: "f", Bind: "e", TS: us(a[1].at), TID: tid(a[1].Rank, 0), ID: strconv.Itoa(id)})
		}
	}
	slices.SortStableFunc(all, func(a, b chromeEvent) int { return cmp.Compare(a.TS, b.TS) })
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": all, "displayTimeUnit": "ns"})
}
