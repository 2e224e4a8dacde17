package mpicx

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/trace"
	"strings"
	"sync"

	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/internal/timeline"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// watchBy adds the watchers that the options ask for. c is the rank's first communicator. Without
// watchers, neither the ledger nor a Wait makes events.
func (c *Comm) watchBy(o *options) {
	p := c.proc
	if o.log != nil {
		p.watchers = append(p.watchers, logging{o.log, p.rank})
	}
	if o.trace {
		p.watchers = append(p.watchers, &tracing{rank: p.rank, tasks: make(map[*ledger.Comm]tracedError)})
	}
	if o.recorder != nil {
		p.watchers = append(p.watchers, &recording{o.recorder, o.run, p.rank})
	}
	p.ledger.Quiet = p.watchers == nil
	if o.trace || o.recorder != nil {
		p.observe = func(cells ...*waiting.Cell) func() { return p.blocked(func() string { return namesOf(cells) }) }
		p.place = p.newPlace()
	}
}

// namesOf names the operations that a goroutine waits for. An operation has the same name at all
// ranks that are in it.
func namesOf(cells []*waiting.Cell) string {
	if len(cells) > 1 {
		return fmt.Sprintf("WaitAny of %d", len(cells))
	}
	switch k, ok := cells[0].Kept().(*keeper); {
	case !ok:
		return "Wait"
	case k.call != "":
		return k.call + " on " + k.name
	default:
		return k.nameOf(cells[0])
	}
}

// nameOf names the pending operation on c whose future has the cell.
func (c *Comm) nameOf(cell *waiting.Cell) string {
	name := "Wait on " + c.name
	c.t.EachPending(func(r *transport.Request) {
		if o := operationOf(r); o != nil && o.cell() == cell {
			name = c.called(r)
		}
	})
	return name
}

// Mark writes text to the timeline (WithTimeline) and the execution trace (WithRuntimeTrace), to
// show where in its program this rank is. recovery.Run marks its attempts.
func (c *Comm) Mark(text string) {
	c.there("Mark")
	if c.proc.watchers != nil {
		c.proc.happened(timeline.Line{Event: timeline.Mark, Comm: c.name, Text: text})
	}
}

// lineOf returns the timeline's line for an event of the ledger.
func lineOf(e *ledger.Event) timeline.Line {
	c := ownerOf(e.Comm)
	l := timeline.Line{Comm: c.name, Round: e.Round, Final: e.Corrupt}
	by := c.worldRank(e.By)
	switch e.Kind {
	case ledger.Signalled:
		l.Event, l.Text = timeline.Fault, decodeFailure(errchan.Report{Data: e.Raised.Data}).Message
	case ledger.Noticed:
		l.Event, l.By = timeline.Notice, &by
	case ledger.Joined:
		l.Event = timeline.Join
	case ledger.Resolved, ledger.Corrupted:
		l.Event, l.Text = timeline.Verdict, e.Error.Face.Error()
	case ledger.Revoked:
		l.Event, l.By = timeline.Revoke, &by
	case ledger.Died:
		l.Event, l.By = timeline.Death, &by
	case ledger.Advanced:
		l.Event = timeline.Epoch
	}
	return l
}

func (i *inside) Happened(kind timeline.Kind, text string) {
	i.proc.happened(timeline.Line{Event: kind, Comm: i.name, Text: text})
}

// logging is the watcher of WithLogger.
type logging struct {
	*slog.Logger
	rank int
}

func (log logging) happened(l timeline.Line) {
	if l.Event == timeline.Unsent {
		log.Warn("unsent", "rank", log.rank, "comm", l.Comm, "message", l.Text)
	}
}

func (log logging) blocked(func() string) (over func()) { return func() {} }

// heard logs an event of the ledger: a corruption as an error, others as warnings. It leaves out
// events that tell the reader of a log nothing new.
func (log logging) heard(e *ledger.Event) {
	level, args := slog.LevelWarn, []any{"rank", ownerOf(e.Comm).rank, "comm", ownerOf(e.Comm).name, "epoch", e.Round}
	if e.Corrupt {
		level = slog.LevelError
	}
	switch e.Kind {
	case ledger.Signalled:
		f := decodeFailure(errchan.Report{Data: e.Raised.Data})
		args = append(args, "code", f.Code, "message", f.Message, "corrupt", e.Corrupt)
	case ledger.Noticed:
		if e.By == ownerOf(e.Comm).rank {
			return // this rank has raised the error itself
		}
		args = append(args, "from", e.By)
	case ledger.Revoked:
		args = append(args, "from", e.By)
	case ledger.Resolved, ledger.Corrupted:
		args = append(args, "failures", len(e.Error.Verdict.Reports))
	case ledger.Died:
		args = append(args, "process", e.By)
	default:
		return
	}
	log.Log(context.Background(), level, e.Kind.String(), args...)
}

// tracing is the watcher of WithRuntimeTrace.
type tracing struct {
	rank int

	mu    sync.Mutex                   // protects tasks
	tasks map[*ledger.Comm]tracedError // the tasks of open rounds, from the first event to the epoch
}

// A tracedError is the execution trace's task for one round, and its context.
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
	if !open && (l.Event == timeline.Death || l.Event == timeline.Revoke) { // these may come at any time
		t.log(context.Background(), l)
		return
	}
	if !open {
		task.Context, task.Task = trace.NewTask(context.Background(), "mpicx error")
		t.tasks[e.Comm] = task
	}
	if t.log(task.Context, l); l.Event == timeline.Epoch {
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
	text := l.Text
	if l.By != nil {
		text = fmt.Sprintf("of rank %d", *l.By)
	}
	trace.Logf(ctx, "mpicx "+string(l.Event), "rank %d%s: %s", t.rank, on, text)
}

// blocked begins a region, which is named after the kind of operation: "mpicx Allreduce".
func (t *tracing) blocked(op func() string) (over func()) {
	if !trace.IsEnabled() {
		return func() {}
	}
	kind, _, _ := strings.Cut(op(), " ")
	return trace.StartRegion(context.Background(), "mpicx "+kind).End
}

// recording is the watcher of WithTimeline: it writes the timeline of a rank.
type recording struct {
	*timeline.Writer
	run, rank int
}

func (r *recording) heard(e *ledger.Event) { r.happened(lineOf(e)) }

func (r *recording) happened(l timeline.Line) {
	l.Run, l.Rank = r.run, r.rank
	r.Write(l)
}

func (r *recording) blocked(op func() string) (over func()) {
	l := timeline.Line{T: r.Now(), Event: timeline.Wait, ID: r.ID(), Op: op()}
	r.happened(l)
	return func() {
		since := l.T
		l.T, l.Event = r.Now(), timeline.Waited
		l.For = l.T - since
		r.happened(l)
	}
}

// record opens this process's file, if the options ask for a timeline.
func (o *options) record() error {
	if o.timeline == "" {
		return nil
	}
	job := ""
	if place, _ := machine.Started(); place != nil {
		job = place.Job()
	} else if launcher.Processes() > 0 {
		job = cmp.Or(launcher.Job(), "launched")
	}
	var err error
	o.recorder, o.run, err = timeline.Open(o.timeline, job, func(err error) {
		fmt.Fprintln(o.set.Diagnoses, "mpicx: the timeline ends here:", err)
	})
	if err != nil {
		return mpiErrorf("Run", ClassOther, "timeline in %q: %v", o.timeline, err)
	}
	return nil
}
