package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A Reporter prints where the ranks of a job are on three occasions: when the deadline of the job's
// context has passed, when a signal arrives, and before a signal ends the process with its stacks.
// It asks the ranks shortly before the deadline, because the deadline ends their Waits. Each
// process has a Reporter.
type Reporter struct {
	ctx     context.Context // of the job
	out     io.Writer
	on      Caught
	find    func(ctx context.Context, why Why, delay time.Duration) string
	running context.Context // until End
	stop    context.CancelFunc
	printer sync.WaitGroup // the goroutine of run, if there is anything to report
	last    error          // the job's error at this process; set before running ends

	signalled sync.Mutex // held while it prints on a signal
}

// Report starts a Reporter. The caller stops it by End. find asks the ranks until its context ends,
// and returns the text to print, or "" if another process prints it; see [Side.AskOnce].
func Report(ctx context.Context, out io.Writer, on Caught, find func(ctx context.Context, why Why, delay time.Duration) string) *Reporter {
	r := &Reporter{ctx: ctx, out: out, on: on, find: find}
	r.running, r.stop = context.WithCancel(context.Background())
	r.catch()
	if end, has := ctx.Deadline(); has {
		due := time.After(time.Until(end) - ahead(end))
		r.printer.Go(func() { r.run(end, due) })
	}
	return r
}

// ahead returns how long before the deadline the ranks are asked: long enough for them to answer on
// a machine that is busy with other work.
func ahead(end time.Time) time.Duration { return min(time.Second, time.Until(end)/5) }

// Every calls check once a period, until check returns false or the Reporter ends, and the context
// with it.
func (r *Reporter) Every(period time.Duration, check func(context.Context) (more bool)) {
	r.printer.Go(func() {
		ticks := time.NewTicker(period)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				if !check(r.running) {
					return
				}
			case <-r.running.Done():
				return
			}
		}
	})
}

// End stops the Reporter. All ranks of this process have returned; err is their error or nil.
func (r *Reporter) End(err error) {
	r.last = err
	r.release()
	r.stop()
	r.printer.Wait()
}

// run asks and prints until running ends. due fires shortly before end, the deadline of the job.
func (r *Reporter) run(end time.Time, due <-chan time.Time) {
	found := "" // the text to print if the deadline passes
	passed := r.ctx.Done()
	for {
		select {
		case <-due:
			found = r.ask(ByDeadline, time.Until(end)*3/4, end)
		case <-passed:
		case <-r.running.Done():
			r.print(found, r.last)
			return
		}
		if r.ctx.Err() != nil {
			r.print(found, nil)
			found, passed = "", nil
		}
	}
}

func (r *Reporter) ask(why Why, delay time.Duration, end time.Time) string {
	ctx, cancel := context.WithDeadline(r.running, end)
	defer cancel()
	return r.find(ctx, why, delay)
}

// print prints what was found, if a deadline has ended the job: the deadline of its context at this
// process, or at another, whose error err has come first.
func (r *Reporter) print(found string, err error) {
	const text = "context deadline exceeded" // of another process
	if passed := errors.Is(r.ctx.Err(), context.DeadlineExceeded) || err != nil && strings.Contains(err.Error(), text); passed && found != "" {
		fmt.Fprint(r.out, "mpicx: the deadline of the job's context has passed; before, ", found)
	}
}
