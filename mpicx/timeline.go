package mpicx

import (
	"cmp"
	"fmt"

	"github.com/mpicx/go-mpicx/internal/launcher"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/internal/timeline"
)

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
