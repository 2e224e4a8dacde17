package mpicx

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/internal/record"
	"github.com/mpicx/go-mpicx/internal/transport"
)

// where says where this rank is. All ranks in the same operation return the same text, so that a
// Diagnosis can group them. c is the rank's first communicator. The goroutine that receives a
// question calls it.
func (c *comm) where() string {
	p, idle := c.position()
	return cmp.Or(idle, p.String())
}

// position returns where this rank is. It returns idle, a text, instead if the rank needs nothing
// of any other.
func (c *comm) position() (p observe.Position, idle string) {
	if idle = c.idle(); idle == "" {
		p.Returned = c.proc.stage.Load() == stageReturned
		c.locate(&p)
	}
	return p, idle
}

// idle says why the rank needs nothing of any other, or returns "".
func (c *comm) idle() string {
	switch at := c.proc.stage.Load(); {
	case c.proc.dead.Load():
		return "dead" // with the black channel, where a death ends no process
	case at >= stageEnded:
		return "returned"
	case at == stageParked:
		return "a spare that is not needed so far"
	}
	return ""
}

// answering is a Comm as its Side knows it.
type answering comm

func (a *answering) Answer(why diagnosis.Why, origin int) string {
	return (*comm)(a).answer(why, origin)
}
func (a *answering) Moved() { a.proc.still.Store(false) }

// ofRecord begins the part of an answer that has the record of the rank's calls.
const ofRecord = "\x00"

// answer is what this rank answers a question of a rank of c. If that rank can't read this one's
// record, because it is on another machine, the latest calls follow.
func (c *comm) answer(why diagnosis.Why, origin int) string {
	text := c.root().said(why)
	if _, _, near := c.t.Record(origin, nil); !near {
		own, _, _ := c.t.Record(c.rank, nil)
		text += ofRecord + string(record.Encode(own))
	}
	return text
}

// said is where, as this rank answers a question. To one on a signal or before a deadline, the line
// of the program follows if the rank computes. If the question is whether the job has stalled,
// the answer of a rank that has moved lately, or whose process has told the stall, is Moves. c is
// the rank's first communicator.
func (c *comm) said(why diagnosis.Why) string {
	p, idle := c.position()
	switch {
	case idle != "":
		return idle
	case why == diagnosis.ByStall && (!p.Waits() || !c.proc.still.Load() || !c.proc.stall.isNear()):
		return diagnosis.Moves
	case why == diagnosis.ByStall || why != diagnosis.ByProgram && !p.Waits():
		return p.String() + c.line()
	}
	return p.String()
}

// line returns the line of the program at which the rank's goroutine waits, with " at " before it,
// or "".
func (c *comm) line() string {
	goroutine := int(c.proc.goroutine.Load())
	if goroutine == 0 {
		return ""
	}
	if at := c.proc.stall.sources.of(goroutine); at != "" {
		return " at " + at
	}
	return ""
}

// isStill says whether this rank needs nothing, or attends and has begun no Wait since the last
// look. It is cheap: answer looks for what a rank that attends waits for, if it waits.
func (c *comm) isStill() bool {
	// A Wait that begins after this is seen at the next look.
	was := c.proc.still.Swap(true)
	return c.idle() != "" || was && c.proc.ledger.Attends()
}

// locate adds the operations on c and on the communicators derived from it.
func (c *comm) locate(p *observe.Position) {
	c.t.EachPending(func(r *transport.Request) {
		switch awaited, known := isAwaited(r); {
		case awaited:
			observe.Add(&p.Awaited, observe.SharedOperationOf(r, c.name))
		case known:
			observe.Add(&p.Pending, observe.SharedOperationOf(r, c.name))
		}
	})
	for part := range strings.SplitSeq(c.channel.Waiting(), "; ") {
		what, whom, waits := strings.Cut(part, " waits for ") // whom differs between ranks
		switch o := (observe.Operation{Name: what, Comm: c.name}); {
		case !waits:
		case strings.Contains(whom, "this rank to join"):
			observe.Add(&p.Pending, o)
		default:
			observe.Add(&p.Awaited, o)
		}
	}
	if number, what := c.t.Called(); number > 0 {
		observe.Add(&p.Last, observe.Operation{Name: what.String(), Number: number, Comm: c.name, Epoch: c.t.Epoch()})
	}
	for _, child := range c.byName() {
		child.locate(p)
	}
}

// isAwaited says whether a goroutine waits for the operation of a request. known says whether the
// program knows of the operation, or waits in it.
func isAwaited(r *transport.Request) (awaited, known bool) {
	if o := programsOf(r); o != nil {
		return o.cell().Awaited(), true
	}
	if x, ok := r.Done.(*collective.Exchange); ok {
		_, awaited = x.Ender().(ender) // it belongs to TryAll, which waits at once
		return awaited, awaited
	}
	w, ok := r.Done.(*onlyError)
	awaited = ok && !w.aside
	return awaited, awaited
}

// Blocked returns a line for each operation that this rank has begun on c, or on a communicator
// derived from c, and that has not ended: operation, peer, tag, communicator, epoch. It also
// names the rounds of errors that are open, and the ranks that have not joined them. Use it to find
// out why a program hangs. It may be called from any goroutine. [Comm.Diagnose] asks all ranks.
func (c *Comm) Blocked() []string {
	c.mustExist("Blocked")
	return c.blocked()
}

func (c *comm) blocked() (lines []string) {
	c.t.EachPending(func(r *transport.Request) { lines = append(lines, observe.OperationOf(r, c.name).String()) })
	if waiting := c.channel.Waiting(); waiting != "" {
		lines = append(lines, fmt.Sprintf("on %s: %s", c.name, waiting))
	}
	for _, d := range c.byName() {
		lines = append(lines, d.blocked()...)
	}
	return lines
}

// byName returns what derived returns, sorted by name, so that the order is the same each time.
func (c *comm) byName() []*comm {
	return slices.SortedFunc(slices.Values(c.derived()), func(a, b *comm) int { return strings.Compare(a.name, b.name) })
}

// progress implements hook.Rank.Progress.
func (c *comm) progress() string {
	called, _ := c.t.Called()
	var pending []string // in no order
	c.t.EachPending(func(r *transport.Request) { pending = append(pending, fmt.Sprintf("%p", r)) })
	slices.Sort(pending)
	text := fmt.Sprintln(c.name, c.t.Epoch(), called, pending)
	for _, d := range c.byName() {
		text += d.progress()
	}
	return text
}

// Mark writes text to the timeline (WithTimeline) and the execution trace (WithRuntimeTrace), to
// show where in its program this rank is. recovery.Run marks its attempts.
func (c *Comm) Mark(text string) {
	c.mustExist("Mark")
	c.proc.observer.Happened(observe.Event{Kind: observe.Mark, Comm: c.name, Text: text})
}
