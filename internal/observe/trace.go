package observe

import (
	"context"
	"fmt"
	"runtime/trace"
	"slices"
	"strings"
	"sync"
)

// tracing is the part of a rank in the execution trace: a task for each round of errors, and logs.
type tracing struct {
	mu    sync.Mutex
	tasks map[string]task // of open rounds, from the first event to the epoch, by communicator
}

// A task is the execution trace's task for one round, and its context.
type task struct {
	context.Context
	*trace.Task
}

func (t *tracing) add(e *Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, open := t.tasks[e.Comm]
	isOfRound := slices.Contains([]Kind{Fault, Notice, Join, Verdict, Epoch}, e.Kind)
	switch {
	case !open && isOfRound:
		of.Context, of.Task = trace.NewTask(context.Background(), "mpicx error")
		if t.tasks == nil {
			t.tasks = make(map[string]task)
		}
		t.tasks[e.Comm] = of
	case !isOfRound && !(open && (e.Kind == Death || e.Kind == Revoke)): // these may come at any time
		of.Context = context.Background()
	}
	on, text := "", e.Text
	if e.Comm != "" {
		on = " on " + e.Comm
	}
	if e.By != nil {
		text = fmt.Sprintf("of rank %d", *e.By)
	}
	trace.Logf(of, "mpicx "+string(e.Kind), "rank %d%s: %s", e.Rank, on, text)
	if e.Kind == Epoch {
		of.End()
		delete(t.tasks, e.Comm)
	}
}

// region begins a region, which is named after the kind of operation: "mpicx Allreduce".
func region(op string) (end func()) {
	kind, _, _ := strings.Cut(op, " ")
	return trace.StartRegion(context.Background(), "mpicx "+kind).End
}
