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

// A reporter prints which operations the ranks of a job are in, as Diagnose does: when the deadline of
// the context of Run or Initialize has passed, and when the signal comes that MPICX_DIAGNOSE names. It
// asks the ranks shortly before the deadline, because the deadline ends their Waits. Each process has
// a reporter. If several are about to print the same, only that of the first rank does.
type reporter struct {
	ctx     context.Context // of Run
	out     io.Writer
	stop    chan struct{}
	stopped chan struct{} // nil: there is nothing to report
	last    error         // the job's error at this process, when stop is closed

	mu    sync.Mutex
	roots []*Comm // the first communicators of the ranks of this process
}

// report starts a reporter. end stops it.
func report(ctx context.Context, o *options) *reporter {
	r := &reporter{ctx: ctx, out: o.set.Diagnoses, stop: make(chan struct{})}
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

// ahead returns how long before the deadline the ranks are asked: long enough for them to answer on
// a machine that is busy with other work.
func ahead(end time.Time) time.Duration { return min(time.Second, time.Until(end)/5) }

// end stops the reporter. All ranks of this process have returned; err is their error or nil.
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

// asker returns the communicator on which the ranks are asked: the largest that is not closed, of
// the first living rank of this process. In a job with fresh ranks it is the newest that Replace has
// made. asker returns nil if there is none.
func (r *reporter) asker() *Comm {
	r.mu.Lock()
	roots := slices.Clone(r.roots)
	r.mu.Unlock()
	roots = slices.DeleteFunc(roots, func(c *Comm) bool {
		return c.proc.dead.Load() || c.lineage.recruiter != nil && c.lineage.last() == nil
	})
	if len(roots) == 0 {
		return nil
	}
	root := slices.MinFunc(roots, func(a, b *Comm) int { return cmp.Compare(a.rank, b.rank) })
	if root.lineage.recruiter != nil { // some ranks of the pool may not have been started
		return root.lineage.last()
	}
	var widest *Comm
	for _, c := range root.family() {
		if (widest == nil || c.size > widest.size) && !c.isClosed() {
			widest = c
		}
	}
	return widest
}

func (r *reporter) run(end time.Time, due <-chan time.Time, signals <-chan os.Signal) {
	found := "" // what was found before the deadline
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

// hasPassed says whether a deadline has ended the job: the deadline of its context at this process,
// or at another, whose error has come first.
func hasPassed(ctx context.Context, err error) bool {
	const text = "context deadline exceeded" // of another process
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || err != nil && strings.Contains(err.Error(), text)
}

// find asks the ranks, until end, and returns the text to print. It returns "" if another process
// prints it. If several processes call find at the same time, the first rank asks at once, and the
// others later, the last one after delay. By then they have usually been asked.
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
	lines := c.diagnosis(said, upTo(c.size)).lines()
	return fmt.Sprintf("the ranks of %s were in\n  %s\n", c.name, strings.Join(lines, "\n  "))
}
