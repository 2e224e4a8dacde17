package mpicx

import (
	"context"
	"runtime/trace"
	"strings"
	"sync"

	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/timeline"
)

// tracing is the watcher of WithRuntimeTrace.
type tracing struct {
	rank int

	mu    sync.Mutex
	tasks map[*ledger.Comm]tracedError // the tasks of open rounds
}

// A tracedError is the task of a round.
type tracedError struct {
	context.Context
	*trace.Task
}

func (t *tracing) heard(e *ledger.Event) {
	if !trace.IsEnabled() {
		return
	}
	l := lineOf(e)
	t.mu.Lock()
	defer t.mu.Unlock()
	task, open := t.tasks[e.Comm]
	switch l.Event {
	case timeline.Death, timeline.Revoke: // these may come at any time
	default:
		if !open {
			task.Context, task.Task = trace.NewTask(context.Background(), "mpicx error")
			if t.tasks == nil {
				t.tasks = make(map[*ledger.Comm]tracedError)
			}
			t.tasks[e.Comm] = task
		}
	}
	if task.Context == nil {
		task.Context = context.Background()
	}
	t.log(task.Context, l)
	if l.Event == timeline.Epoch && task.Task != nil {
		task.End()
		delete(t.tasks, e.Comm)
	}
}

func (t *tracing) happened(l timeline.Line) {
	if trace.IsEnabled() {
		t.log(context.Background(), l)
	}
}

func (t *tracing) log(ctx context.Context, l timeline.Line) {
	on := l.Comm
	if on != "" {
		on = " on " + on
	}
	if l.By != nil {
		trace.Logf(ctx, "mpicx "+string(l.Event), "rank %d%s: of rank %d", t.rank, on, *l.By)
	} else {
		trace.Logf(ctx, "mpicx "+string(l.Event), "rank %d%s: %s", t.rank, on, l.Text)
	}
}

// blocked makes a region for each kind of operation, such as Allreduce.
func (t *tracing) blocked(op func() string) (over func()) {
	if !trace.IsEnabled() {
		return func() {}
	}
	kind, _, _ := strings.Cut(op(), " ")
	return trace.StartRegion(context.Background(), "mpicx "+kind).End
}
