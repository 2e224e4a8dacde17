package mpicx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/internal/diagnosis"
)

// A reporter prints what the ranks of a job are in, as Diagnose says: shortly before the deadline
// of the context of Run or Initialize, once that has passed; and when a signal comes
// that MPICX_DIAGNOSE names. Each process has one; if several are about to print the same,
// the first of their ranks does.
//
// It asks before the deadline because the ranks, whose Waits end with it, are in something else
// afterwards.
type reporter struct {
	ctx     context.Context // of Run
	out     io.Writer
	stop    chan struct{}
	stopped chan struct{} // nil: there is nothing to report
	last    error         // of the job at this process, once stop is closed

	mu    sync.Mutex
	roots []*Comm // of the ranks of this process
}

// report begins to report. End ends it.
func report(ctx context.Context, o *options) *reporter {
	r := &reporter{ctx: ctx, out: o.diagnoses, stop: make(chan struct{})}
	end, has := ctx.Deadline()
	if !has && o.diagnoseOn == nil {
		return r
	}
	var before *time.Timer
	var due <-chan time.Time
	if has {
		before = time.NewTimer(time.Until(end) - ahead(end))
		due = before.C
	}
	var signals chan os.Signal
	if o.diagnoseOn != nil {
		signals = make(chan os.Signal, 1)
		signal.Notify(signals, o.diagnoseOn)
	}
	r.stopped = make(chan struct{})
	go func() {
		defer close(r.stopped)
		if before != nil {
			defer before.Stop()
		}
		if signals != nil {
			defer signal.Stop(signals)
		}
		r.run(end, due, signals)
	}()
	return r
}

// ahead is how long before a deadline the ranks are asked: long enough for them to answer on a machine
// that has other work.
func ahead(end time.Time) time.Duration { return min(time.Second, time.Until(end)/5) }

// end ends the report: all ranks of this process have returned, with errors or nil.
func (r *reporter) end(err error) {
	if r.last = err; r.stopped != nil {
		close(r.stop)
		<-r.stopped
	}
}

// add notes a rank of this process.
func (r *reporter) add(root *Comm) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roots = append(r.roots, root)
}

// asker returns the communicator by which all ranks are asked: that of the first rank of this
// process that lives, and the world, or the largest that is not closed; nil: there is none.
func (r *reporter) asker() *Comm {
	r.mu.Lock()
	roots := slices.Clone(r.roots)
	r.mu.Unlock()
	roots = slices.DeleteFunc(roots, func(c *Comm) bool { return c.proc.dead.Load() })
	if len(roots) == 0 {
		return nil
	}
	root := slices.MinFunc(roots, func(a, b *Comm) int { return cmp.Compare(a.rank, b.rank) })
	var widest *Comm
	for _, c := range root.family() {
		if (widest == nil || c.size > widest.size) && !c.isClosed() {
			widest = c
		}
	}
	return widest
}

func (r *reporter) run(end time.Time, due <-chan time.Time, signals <-chan os.Signal) {
	found := "" // before the deadline
	passed := r.ctx.Done()
	for {
		select {
		case <-due:
			found = r.find(diagnosis.ByDeadline, time.Until(end)*3/4, end)
		case <-signals:
			const patience = 2 * time.Second
			if text := r.find(diagnosis.BySignal, patience/8, time.Now().Add(patience)); text != "" {
				fmt.Fprintf(r.out, "mpicx: on a signal, %s", text)
			}
			continue
		case <-passed:
		case <-r.stop:
			if found != "" && hasPassed(r.ctx, r.last) {
				fmt.Fprint(r.out, passedText, found)
			}
			return
		}
		if r.ctx.Err() == nil {
			continue
		}
		if found != "" && hasPassed(r.ctx, nil) {
			fmt.Fprint(r.out, passedText, found)
		}
		found, passed = "", nil
	}
}

const passedText = "mpicx: the deadline of the job's context has passed; before, "

// hasPassed says whether the job was ended by a deadline: that of its context at this process, or
// at another, whose error has come first.
func hasPassed(ctx context.Context, err error) bool {
	const text = "context deadline exceeded" // of another process
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || err != nil && strings.Contains(err.Error(), text)
}

// find returns what the ranks are in, until end, or "", if another process says it. Of those that
// come to it at the same time the first rank asks at once, and the last one after a delay: mostly
// they have been asked by then.
func (r *reporter) find(why diagnosis.Why, delay time.Duration, end time.Time) string {
	c := r.asker()
	if c == nil {
		return ""
	}
	select {
	case <-time.After(delay * time.Duration(c.rank) / time.Duration(c.size)):
	case <-r.stop:
		return ""
	}
	if c.side.Heard(why, true) {
		return ""
	}
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	go func() {
		select {
		case <-r.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	said, rival := c.ask(ctx, why)
	if rival >= 0 && rival < c.rank || c.side.Heard(why, false) {
		return ""
	}
	lines := c.diagnosis(said, firstRanks(c.size)).lines()
	return fmt.Sprintf("the ranks of %s were in\n  %s\n", c.name, strings.Join(lines, "\n  "))
}
