package mpicx

import (
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/timeline"
)

// Mark writes text to the timeline (WithTimeline) and the execution trace (WithRuntimeTrace), to show
// where in its program this rank is. recovery.Run marks its attempts.
func (c *Comm) Mark(text string) {
	c.there("Mark")
	if c.proc.watchers != nil {
		c.proc.happened(timeline.Line{Event: timeline.Mark, Comm: c.name, Text: text})
	}
}

// waits is called by a goroutine that is about to wait on c, but not for a future. The goroutine
// calls over when it stops waiting.
func (c *Comm) waits(call string) (over func()) {
	if c.proc.watchers == nil {
		return func() {}
	}
	return c.proc.blocked(func() string { return call + " on " + c.name })
}

// lineOf returns the line of an event of the ledger.
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
