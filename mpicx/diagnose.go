package mpicx

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/ledger"
	"github.com/mpicx/go-mpicx/internal/machine"
	"github.com/mpicx/go-mpicx/internal/record"
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

	calls []string // lines: the collective calls around the first in which the ranks differ
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
//
// If the ranks have made different collective calls, or not the same number, up to three of these
// calls follow, with the times at which they began. The last of them, after a ●, is the first that
// differs. Ranks that are dead or do not answer are included, if this process shares memory with
// them.
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
	return append(lines, d.calls...)
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
	said, _ := asked.side.Ask(ctx, diagnosis.ByProgram, c.proc.await)
	c.proc.exitIfDead()
	return c.diagnosis(said, ranks), nil
}

// asked returns the communicator on which Diagnose asks the members of c, and their ranks there. It
// is not always c: a rank whose program has not reached the Dup that makes c has no side of c. Of c
// and its ancestors, asked chooses the one nearest to the world that is not closed and has all
// members of c. It leaves out the pool of a job with fresh ranks, because some of its ranks may not
// have been started.
func (c *comm) asked() (w *comm, ranks []int) {
	w = c
	for a := c; a != nil; a = a.parent {
		if isPool := a.parent == nil && a.lineage.start != nil; isPool || a.isClosed() {
			continue
		}
		if all := a.ranksOf(c); all != nil {
			w, ranks = a, all
		}
	}
	return w, ranks
}

// ranksOf returns the ranks in c of the members of d, or nil if one of them is not in c.
func (c *comm) ranksOf(d *comm) []int {
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

// diagnosis makes a Diagnosis of c from the answers. said has the answers by rank on the
// communicator on which the ranks were asked. ranks has the rank there of each member of c.
func (c *comm) diagnosis(said map[int]string, ranks []int) *Diagnosis {
	d := &Diagnosis{Differs: -1}
	mine := make(map[int]string)
	sent := make(map[int]string) // records, by the rank in the world
	for r, asked := range ranks {
		text, answered := said[asked]
		text, calls, sends := strings.Cut(text, ofRecord)
		if sends {
			sent[c.worldRank(r)] = calls
		}
		switch {
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
	d.calls = c.differing(sent)
	return d
}

// differing compares the collective calls of the ranks on c and then, if they do not differ there,
// on each of the communicators derived from c that this rank has used lately. Sent are the records
// that ranks have sent. It returns the first lines that there are.
func (c *comm) differing(sent map[int]string) (lines []string) {
	lines = c.compare(upTo(c.size), sent)
	own, _, _ := c.t.Record(c.rank, nil)
	others := slices.SortedFunc(slices.Values(c.family()), func(a, b *comm) int { return strings.Compare(a.name, b.name) })
	for _, d := range others {
		used := slices.ContainsFunc(own, func(call record.Call) bool { return call.IsOn(d.t.ID()) })
		if len(lines) == 0 && used && d != c {
			lines = d.compare(upTo(d.size), sent)
		}
	}
	return lines
}

// compare compares the collective calls of ranks of c since its last error. If that error has
// corrupted c, it compares those before.
func (c *comm) compare(ranks []int, sent map[int]string) []string {
	epoch := c.t.Epoch().Errors()
	if epoch > 0 && locked(&c.proc.mu, c.ledger.IsCorrupted) {
		epoch--
	}
	return diagnosis.Calls(ranks, c.t.ID(), epoch, c.name, func(rank int, calls []record.Call) ([]record.Call, bool) {
		if all, complete, ok := c.t.Record(rank, calls); ok {
			return all, complete
		}
		text, sends := sent[c.worldRank(rank)]
		all := record.Decode([]byte(text), calls)
		return all, sends && len(all) < record.Sent
	})
}

// A reporter is a diagnosis.Reporter of the ranks of this process. If several processes are about
// to print the same, only that of the first rank prints.
type reporter struct {
	*diagnosis.Reporter
	out   io.Writer
	stall *stall
	fails bool // WithDeadlockError

	mu    sync.Mutex
	roots []*comm // the first communicators of the ranks of this process
}

const (
	// stallTime is how long no rank may move until that is reported.
	stallTime = 10 * time.Second
	// mostTold is how many stalls a process prints.
	mostTold = 3
)

// report starts a reporter. The caller stops it by End.
//
// In a bubble of package testing/synctest, whose clock is behind the process's, no stall is
// reported: the bubble itself finds that all goroutines wait, unless one waits for a timer, as the
// reporter would.
func report(ctx context.Context, o *options) *reporter {
	after := max(0, o.set.Stall)
	if o.set.Stall == 0 && !time.Now().Before(start) {
		after = stallTime
	}
	r := &reporter{out: o.set.Diagnoses, stall: &stall{after: after}, fails: o.deadlockError}
	r.Reporter = diagnosis.Report(ctx, o.set.Diagnoses, r.caught(o.stopSignals), r.find)
	if after > 0 {
		r.stall.look()
		more := true
		r.Every(r.stall.tick(), func(ctx context.Context) bool {
			r.stall.look()
			more = more && r.check(ctx)
			return true // for the time
		})
	}
	return r
}

// caught returns the signals on which this process prints. It leaves out those that the program has
// for itself, as far as is known: those in taken, and those that it ignores. In a bubble no signal
// may be caught.
func (r *reporter) caught(taken []os.Signal) diagnosis.Caught {
	c := diagnosis.Caught{Print: diagnosis.Signal(), Quit: diagnosis.Signals["SIGQUIT"], Several: machine.Processes() > 1, Tell: r.tell}
	inBubble := time.Now().Before(start)
	isFree := func(s os.Signal) bool {
		return s != nil && !inBubble && !slices.Contains(taken, s) && !signal.Ignored(s)
	}
	if !isFree(c.Quit) || c.Quit == c.Print || os.Getenv("MPICX_DIAGNOSE") == "off" || os.Getenv("GOTRACEBACK") == "none" {
		c.Quit = nil
	}
	if !isFree(c.Print) {
		c.Print = nil
	}
	return c
}

// tell tells the launcher where the rank of this process is, and at which line of the program, if
// the launcher has asked.
func (r *reporter) tell() bool {
	return machine.Tell(func() string {
		roots := locked(&r.mu, func() []*comm { return slices.Clone(r.roots) })
		if len(roots) == 0 {
			return ""
		}
		c := roots[len(roots)-1]
		return c.where() + c.line()
	})
}

// add adds a rank of this process, given its first communicator, on the goroutine that will run its
// program.
func (r *reporter) add(root *comm) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roots = append(r.roots, root)
	root.proc.stall = r.stall
	root.t.Clock(&r.stall.clock)
	if r.stall.after > 0 && len(r.roots) <= manyGoroutines {
		root.proc.goroutine.Store(int64(thisGoroutine()))
	}
}

// check tells a stall: it prints what the ranks wait for, and with WithDeadlockError raises an
// error. It returns false if it is not to be called any more.
func (r *reporter) check(ctx context.Context) (more bool) {
	if !r.stall.isDue(r.haveMoved()) {
		return true
	}
	c := r.asker()
	if c == nil || c.proc.stage.Load() >= stageEnded { // no program of this process runs
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	said, ok := c.side.AskOnce(ctx, diagnosis.ByStall, r.stall.tick(), c.proc.await)
	if !ok {
		return true
	}
	d := c.diagnosis(said, upTo(c.size))
	if len(d.NoAnswer) > 0 || slices.ContainsFunc(d.Groups, func(g DiagnosisGroup) bool { return g.Doing == diagnosis.Moves }) {
		return true
	}
	told := r.stall.tell()
	if told <= mostTold {
		fmt.Fprintf(r.out, "mpicx: all ranks of %s wait, and none has moved for %g s:\n  %s\n", c.name, r.stall.after.Seconds(), strings.Join(d.lines(), "\n  "))
	}
	if r.fails {
		c.raiseAside(&DeadlockError{d, r.stall.after})
	}
	return r.fails || told < mostTold
}

// haveMoved says whether a rank of this process has moved since the last look. The next look begins
// with this rank, and ends there if it moves again. So a job that works costs little, however many
// ranks it has. Otherwise all are looked at, because a look is what shows a later one that a rank
// has not moved.
func (r *reporter) haveMoved() (moved bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range r.roots {
		if c.isStill() {
			continue
		}
		if i == 0 {
			return true
		}
		r.roots[0], r.roots[i], moved = c, r.roots[0], true
	}
	return moved
}

// A DeadlockError says that all ranks wait, and that none has moved for a while: see
// [WithDeadlockError].
type DeadlockError struct {
	Diagnosis *Diagnosis

	after time.Duration
}

func (e *DeadlockError) Error() string {
	return fmt.Sprintf("mpicx: all ranks wait, and none has moved for %g s: %v", e.after.Seconds(), e.Diagnosis)
}

// raiseAside raises err at the rank of c, on its largest communicator on which that is possible. It
// does not wait for the verdict: the program gets that from its Waits.
func (c *comm) raiseAside(err error) {
	var on *comm
	for _, d := range c.root().family() {
		if d != c.root().lineage.pool && (on == nil || d.size > on.size) && !d.isClosed() && !locked(&c.proc.mu, d.ledger.Broken) {
			on = d
		}
	}
	if on == nil {
		return
	}
	f := newFailure(err, 0)
	c.proc.feed(func() {
		if !on.ledger.Late() {
			f.path = encodePath(on.ledger.Path())
			on.ledger.Raise(&ledger.Raised{Cause: err, Data: f.encode()})
		}
	})
}

// asker returns the communicator on which this process asks the ranks. It belongs to the first
// living rank of this process, one whose program runs if there is one. In a job with fresh ranks it
// is the newest communicator that Replace has made; otherwise it is the largest one that is not
// closed. asker returns nil if there is none.
func (r *reporter) asker() *comm {
	roots := locked(&r.mu, func() []*comm { return slices.Clone(r.roots) })
	roots = slices.DeleteFunc(roots, func(c *comm) bool {
		return c.proc.dead.Load() || c.lineage.start != nil && c.lineage.last() == nil
	})
	if len(roots) == 0 {
		return nil
	}
	over := func(c *comm) int { return truth(c.proc.stage.Load() >= stageEnded) }
	root := slices.MinFunc(roots, func(a, b *comm) int { return cmp.Or(over(a)-over(b), a.rank-b.rank) })
	if root.lineage.start != nil { // some ranks of the pool may not have been started
		return root.lineage.last()
	}
	var widest *comm
	for _, c := range root.family() {
		if (widest == nil || c.size > widest.size) && !c.isClosed() {
			widest = c
		}
	}
	return widest
}

// find asks the ranks, until ctx ends, and returns the text to print. It returns "" if another
// process prints it; see diagnosis.Side.AskOnce.
func (r *reporter) find(ctx context.Context, why diagnosis.Why, delay time.Duration) string {
	c := r.asker()
	if c == nil {
		return ""
	}
	said, ok := c.side.AskOnce(ctx, why, delay, c.proc.await)
	if !ok {
		return ""
	}
	lines := c.diagnosis(said, upTo(c.size)).lines()
	return fmt.Sprintf("the ranks of %s were in\n  %s\n", c.name, strings.Join(lines, "\n  "))
}
