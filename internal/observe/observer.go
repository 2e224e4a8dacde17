package observe

import (
	"log/slog"
	"runtime/trace"
)

// An Observer passes the events of one rank on to the sinks that the job's options ask for. A nil
// Observer has none. Any goroutine may call its methods.
type Observer struct {
	Rank     int          // in the job
	Log      *slog.Logger // nil: none
	Trace    bool         // into the execution trace, while one is made
	Timeline *Timeline    // nil: none
	Run      int          // number of this run in the Timeline

	tracing tracing
}

// Happened tells the sinks of an event. The events of errors come in order.
func (o *Observer) Happened(e Event) {
	if o == nil {
		return
	}
	e.Run, e.Rank = o.Run, o.Rank
	if o.Log != nil {
		log(o.Log, &e)
	}
	if o.Trace && trace.IsEnabled() {
		o.tracing.add(&e)
	}
	if o.Timeline != nil {
		o.Timeline.write(e)
	}
}

// SeesWaits says whether a sink shows what goroutines wait for.
func (o *Observer) SeesWaits() bool { return o != nil && (o.Trace || o.Timeline != nil) }

// Waits is called by a goroutine that is about to wait. op returns the operation's name. The
// goroutine calls over when it stops waiting.
func (o *Observer) Waits(op func() string) (over func()) {
	if !o.SeesWaits() || o.Timeline == nil && !trace.IsEnabled() {
		return func() {}
	}
	e := Event{Kind: Wait, Run: o.Run, Rank: o.Rank, Op: op()}
	left, waited := func() {}, func() {}
	if o.Trace {
		left = region(e.Op)
	}
	if o.Timeline != nil {
		waited = o.Timeline.wait(e)
	}
	return func() { left(); waited() }
}
