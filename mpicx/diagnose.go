package mpicx

import (
	"context"
	"fmt"
	"strings"
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

// asked returns the communicator on which the members of c are asked, and their ranks there: of c
// and its ancestors, the one nearest to the world that is not closed and has all members of c. A rank
// that has not come to the Dup of c has no side of c itself. The pool of a job with fresh ranks is left
// out, because some of its ranks may not have been started.
func (c *Comm) asked() (w *Comm, ranks []int) {
	var line []*Comm
	for a := c; a != nil; a = a.parent {
		if a.parent != nil || a.lineage.recruiter == nil {
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

// ask asks all ranks of c. It returns the answers that have come when ctx ends, by rank.
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

// awaitAnswers waits until all have answered, or ctx has ended.
func (c *Comm) awaitAnswers(ctx context.Context) (all bool) {
	for {
		changed := c.side.Incomplete()
		if changed == nil || !c.proc.await(changed, ctx.Done()) {
			return changed == nil
		}
	}
}

// diagnosis returns the answers of the members of c. ranks are their ranks on the communicator where
// they were asked.
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
