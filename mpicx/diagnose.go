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

// A Diagnosis says what the ranks of a communicator were doing when they were asked.
type Diagnosis struct {
	// Groups are the ranks that have answered, by what they are doing, in the order of their
	// first ranks.
	Groups   []DiagnosisGroup
	Dead     []int // ranks whose processes have died, ascending
	NoAnswer []int // ranks that have not answered in time, ascending
	// Differs is the first rank that is doing something other than most ranks; -1: none.
	Differs int
}

// A DiagnosisGroup is a set of ranks that are doing the same.
type DiagnosisGroup struct {
	Ranks []int // ascending
	// Doing is the operation that they wait for, or that they compute or have returned. "Barrier
	// #17 on world" is the 17th collective operation there since the last error; another example is
	// "Recv from rank 5, tag 9 on world.dup1".
	Doing string
}

// String returns the whole diagnosis in one line:
//
//	ranks 0-2, 4-7: Barrier #17 on world; rank 3: Recv from rank 5, tag 9 on world.dup1; the first that differs is rank 3
func (d *Diagnosis) String() string { return strings.Join(d.lines(), "; ") }

func (d *Diagnosis) lines() (lines []string) {
	say := func(ranks []int, text string) {
		if len(ranks) > 0 {
			lines = append(lines, diagnosis.Name(ranks)+": "+text)
		}
	}
	for _, g := range d.Groups {
		say(g.Ranks, g.Doing)
	}
	say(d.Dead, "dead")
	say(d.NoAnswer, "no answer in time")
	if d.Differs >= 0 {
		lines = append(lines, fmt.Sprintf("the first that differs is rank %d", d.Differs))
	}
	return lines
}

// Diagnose asks all ranks of c what they are waiting for, to find out why a program hangs. It
// is not collective: any number of ranks may call it, from any goroutine. The library answers
// for each rank, whether its program is blocked, computes or has returned. Diagnose also works
// on a communicator that is corrupted or revoked. The answers cover all communicators of a
// rank. [Comm.Blocked] has what this rank alone waits for, without messages.
//
// Give ctx a deadline. When ctx ends, the ranks that have not answered are in NoAnswer, for
// example those of stopped processes. Where ten busy processes share a processor, an answer may
// take some seconds. The error is that of a wrong call: on a nil or closed
// communicator, or after the end of the job.
//
// Diagnose costs nothing until it is called. The answers come along a tree, in O(log n) steps.
func (c *Comm) Diagnose(ctx context.Context) (*Diagnosis, error) {
	const op = "Diagnose"
	if err := c.ready(op, ctx); err != nil {
		return nil, err
	}
	c.proc.exitIfDead()
	if c.isClosed() {
		return nil, mpiErrorf(op, ClassComm, "%s is closed", c.name)
	}
	asked, ranks := c.asked()
	said, _ := asked.ask(ctx, diagnosis.ByProgram)
	c.proc.exitIfDead()
	return c.diagnosis(said, ranks), nil
}

// asked returns the communicator on which Diagnose asks the members of c, and their ranks there. It
// is not always c: a rank whose program has not reached the Dup that makes c has no side of c. Of c
// and its ancestors, asked chooses the one nearest to the world that is not closed and has all
// members of c. It leaves out the pool of a job with fresh ranks, because some of its ranks may not
// have been started.
func (c *Comm) asked() (w *Comm, ranks []int) {
	var line []*Comm
	for a := c; a != nil; a = a.parent {
		if a.parent != nil || a.lineage.start == nil {
			line = append(line, a)
		}
	}
	for i := len(line) - 1; i >= 0; i-- {
		if w = line[i]; !w.isClosed() {
			if ranks = w.ranksOf(c); ranks != nil {
				break
			}
		}
	}
	return w, ranks
}

// ranksOf returns the ranks in c of the members of d, or nil if one of them is not in c.
func (c *Comm) ranksOf(d *Comm) []int {
	rankOf := make(map[int]int, c.size)
	for r := range c.size {
		rankOf[c.worldRank(r)] = r
	}
	ranks := make([]int, d.size)
	for r := range ranks {
		rank, member := rankOf[d.worldRank(r)]
		if !member {
			return nil
		}
		ranks[r] = rank
	}
	return ranks
}

// ask asks all ranks of c, for the reason why, and waits until all have answered or ctx ends. It
// returns the answers so far, by rank, and a rank that asked for the same reason at the same time;
// -1: none. If answers are missing after a second, it asks more insistently.
func (c *Comm) ask(ctx context.Context, why diagnosis.Why) (said map[int]string, rival int) {
	turn := c.side.Turn()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return nil, -1
	}
	c.side.Ask(why)
	patience := time.Second
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end)/2)
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !c.awaitAnswers(soon) && ctx.Err() == nil {
		c.side.Insist()
		c.awaitAnswers(ctx)
	}
	return c.side.End()
}

// awaitAnswers waits until all ranks have answered, or ctx has ended.
func (c *Comm) awaitAnswers(ctx context.Context) (all bool) {
	for {
		changed := c.side.Incomplete()
		if changed == nil || !c.proc.await(changed, ctx.Done()) {
			return changed == nil
		}
	}
}

// diagnosis makes a Diagnosis of c from the answers. said has the answers by rank on the
// communicator on which the ranks were asked. ranks has the rank there of each member of c.
func (c *Comm) diagnosis(said map[int]string, ranks []int) *Diagnosis {
	d := &Diagnosis{Differs: -1}
	mine := make(map[int]string)
	for r, asked := range ranks {
		switch text, answered := said[asked]; {
		case !answered:
			d.NoAnswer = append(d.NoAnswer, r)
		case text == "":
			d.Dead = append(d.Dead, r)
		default:
			mine[r] = text
		}
	}
	most := 0
	for i, g := range diagnosis.Grouped(mine) {
		d.Groups = append(d.Groups, DiagnosisGroup{g.Ranks, g.Text})
		if len(g.Ranks) > len(d.Groups[most].Ranks) {
			most = i
		}
	}
	for i, g := range d.Groups {
		if i != most {
			d.Differs = g.Ranks[0]
			break
		}
	}
	return d
}

// A reporter prints a Diagnosis of a job on two occasions: when the deadline of the context of Run
// or Initialize has passed, and when the signal that MPICX_DIAGNOSE names arrives. It asks the
// ranks shortly before the deadline, because the deadline ends their Waits. Each process has a
// reporter. If several are about to print the same, only the one of the first rank prints.
type reporter struct {
	ctx     context.Context // of Run
	out     io.Writer
	running context.Context // until stop is called
	stop    context.CancelFunc
	stopped chan struct{} // nil: there is nothing to report
	last    error         // the job's error at this process; set before running ends

	mu    sync.Mutex // protects roots
	roots []*Comm    // the first communicators of the ranks of this process
}

// report starts a reporter. The caller stops it by end.
func report(ctx context.Context, o *options) *reporter {
	r := &reporter{ctx: ctx, out: o.set.Diagnoses}
	r.running, r.stop = context.WithCancel(context.Background())
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
		r.stop()
		<-r.stopped
	}
}

// add adds a rank of this process, given its first communicator.
func (r *reporter) add(root *Comm) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roots = append(r.roots, root)
}

// asker returns the communicator on which this process asks the ranks. It belongs to the first
// living rank of this process. In a job with fresh ranks it is the newest communicator that Replace
// has made; otherwise it is the largest one that is not closed. asker returns nil if there is none.
func (r *reporter) asker() *Comm {
	r.mu.Lock()
	roots := slices.Clone(r.roots)
	r.mu.Unlock()
	roots = slices.DeleteFunc(roots, func(c *Comm) bool {
		return c.proc.dead.Load() || c.lineage.start != nil && c.lineage.last() == nil
	})
	if len(roots) == 0 {
		return nil
	}
	root := slices.MinFunc(roots, func(a, b *Comm) int { return cmp.Compare(a.rank, b.rank) })
	if root.lineage.start != nil { // some ranks of the pool may not have been started
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

// run asks and prints until running ends. due fires shortly before end, the deadline of the job.
// Each value of signals is a request for a Diagnosis.
func (r *reporter) run(end time.Time, due <-chan time.Time, signals <-chan os.Signal) {
	found := "" // the text to print if the deadline passes
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
		case <-r.running.Done():
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
	case <-r.running.Done():
		return ""
	}
	if c.side.Heard(why, true) {
		return ""
	}
	ctx, cancel := context.WithDeadline(r.running, end)
	defer cancel()
	said, rival := c.ask(ctx, why)
	if rival >= 0 && rival < c.rank || c.side.Heard(why, false) {
		return ""
	}
	lines := c.diagnosis(said, upTo(c.size)).lines()
	return fmt.Sprintf("the ranks of %s were in\n  %s\n", c.name, strings.Join(lines, "\n  "))
}
