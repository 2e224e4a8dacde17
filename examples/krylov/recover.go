package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/examples/krylov/solver"
	"github.com/mpicx/go-mpicx/mpicx"
)

// checkpoints are the last two of a rank: a rank that fails may not have saved
// the one that others have.
type checkpoints struct {
	slots [2]checkpoint
	last  int // the newer slot
}

type checkpoint struct {
	done  int // iterations; 0: there is none
	state solver.Snapshot
}

// next returns where to save the state after so many iterations.
func (c *checkpoints) next(done int) *solver.Snapshot {
	c.last = 1 - c.last
	s := &c.slots[c.last]
	s.done = done
	return &s.state
}

// newest is how many iterations the newer checkpoint has.
func (c *checkpoints) newest() int { return c.slots[c.last].done }

// at returns the checkpoint after so many iterations, which all ranks have, and
// forgets one that is newer. It is nil for 0 iterations.
func (c *checkpoints) at(done int) *solver.Snapshot {
	if c.slots[c.last].done > done {
		c.slots[c.last].done = 0
		c.last = 1 - c.last
	}
	if done == 0 {
		return nil
	}
	return &c.slots[c.last].state
}

// A notice is what rank 0 is told about a rank's part in an event.
type notice struct {
	Rank        int
	Told, Ready time.Duration // after the first failure
	Repair      string
}

// notice says when the rank knew. If no context told it, the Wait did that it was
// in, which is when Try returned.
func (r *rank) notice(first time.Time) notice {
	n := notice{Rank: r.id, Told: r.ready.Sub(first), Ready: r.ready.Sub(first)}
	if at := r.told.Load(); at != nil {
		n.Told = at.Sub(first)
	}
	return n
}

// recover does what is to be done after failures of ranks, before the solver goes
// on. It runs inside Try: an error that comes meanwhile interrupts it as well,
// and it is done again.
func (r *rank) recover(ctx context.Context) error {
	if len(r.failures) == 0 && !r.rerun {
		return nil
	}
	begin := time.Now()

	// Ranks may be an iteration apart. Agree on how many were done, and on the
	// newest checkpoint that all have.
	mine, all := []int{r.done, -r.saved.newest()}, make([]int, 2)
	mpicx.Allreduce(r.world, mine, all, mpicx.Max).MustWait(ctx)
	done, saved := all[0], -all[1]
	r.done = done
	snapshot := r.saved.at(saved)

	var what, repair string
	var from int
	switch {
	case r.rerun:
		what, from = fmt.Sprintf("the job was started again from the checkpoint of iteration %d", saved), saved
		r.goBack(snapshot, r.job.cfg.recovery == recoverRollback)
	case r.job.cfg.recovery == recoverRollback:
		what, from = fmt.Sprintf("all ranks went back to the checkpoint of iteration %d", saved), saved
		r.goBack(snapshot, true)
	default:
		repair = r.repair(snapshot, saved)
		from = r.xDone
		if saved > r.xDone && r.job.cfg.method == "gmres" {
			// GMRES has computed no iterate since the cycle began, but for the
			// checkpoint.
			r.goBack(snapshot, false)
			from = saved
		}
		what = fmt.Sprintf("all ranks began a new Krylov space from the iterate of iteration %d", from)
	}
	if r.rerun {
		r.rerun, r.failures = false, nil
		if r.id == 0 {
			e := &r.job.out0.Events[len(r.job.out0.Events)-1]
			e.Recovery, e.From, e.Seconds = what, from, time.Since(e.end).Seconds()
		}
		return nil
	}

	first := firstTime(r.failures)
	n := r.notice(first)
	n.Repair = repair
	notices := mpicx.GatherValue(r.world, n, 0).MustGet(ctx)
	if r.id == 0 {
		e := event{
			Iteration: done, Failures: failuresOf(r.failures), Recovery: what, From: from,
			Seconds: time.Since(begin).Seconds(), first: first, end: r.ready,
		}
		e.fill(notices)
		r.job.out0.Events = append(r.job.out0.Events, e)
	}
	r.rounds++
	r.failures = nil
	r.told.Store(nil)
	return nil
}

// goBack sets x to the checkpoint's, and, if whole, lets the method continue from
// there as if nothing had happened.
func (r *rank) goBack(snapshot *solver.Snapshot, whole bool) {
	if snapshot == nil {
		clear(r.x)
		return
	}
	copy(r.x, snapshot.X)
	if whole {
		r.resume = snapshot
	}
}

// repair mends the rank's own part of the solution, if it failed and its part
// can't be trusted, and says so. The part of the last checkpoint does: together
// with the others' newer parts it is as good an iterate to begin from as any.
func (r *rank) repair(snapshot *solver.Snapshot, saved int) string {
	for _, f := range r.failures {
		if f.Rank != r.id {
			continue
		}
		if f.Code == codeGap || !allFinite(r.x) {
			r.goBack(snapshot, false)
			return fmt.Sprintf("rank %d took its part of the solution from its checkpoint of iteration %d", r.id, saved)
		}
		return fmt.Sprintf("rank %d kept its part of the solution, which the fault did not touch", r.id)
	}
	return ""
}

func allFinite(x []float64) bool {
	_, finite := checksum(x)
	return finite
}

func firstTime(fs []mpicx.Failure) time.Time {
	first := fs[0].Time
	for _, f := range fs {
		if f.Time.Before(first) {
			first = f.Time
		}
	}
	return first
}

func failuresOf(fs []mpicx.Failure) []failure {
	out := make([]failure, len(fs))
	for i, f := range fs {
		out[i] = failure{f.Rank, f.Code, f.Message, f.Origin}
	}
	return out
}

// fill adds what the ranks noticed.
func (e *event) fill(notices []notice) {
	var told, ready []time.Duration
	for _, n := range notices {
		if !e.failed(n.Rank) {
			told = append(told, n.Told)
		}
		ready = append(ready, n.Ready)
		if n.Repair != "" {
			e.Repairs = append(e.Repairs, n.Repair)
		}
	}
	e.Told, e.Ready = spreadOf(told), spreadOf(ready)
}

func (e *event) failed(rank int) bool {
	for _, f := range e.Failures {
		if f.Rank == rank {
			return true
		}
	}
	return false
}

// anyFailed says whether err has a rank unwinding.
func (j *job) anyFailed(err error) bool {
	_, ok := errors.AsType[*mpicx.CommCorruptedError](err)
	_, panicked := errors.AsType[*mpicx.PanicError](err)
	return ok || panicked
}

// noteCorruption adds the event that ended mpicx.Run with err.
func (j *job) noteCorruption(err error) {
	e := event{Corrupted: true, end: time.Now()}
	var all []mpicx.Failure
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
		all = c.Failures
	}
	if len(all) > 0 {
		e.first = firstTime(all)
	}
	e.Failures = failuresOf(all)
	if p, ok := errors.AsType[*mpicx.PanicError](err); ok {
		e.Panic = panicOrigin(p.Stack)
		if len(all) == 0 { // nobody else was there to be told
			e.Failures = []failure{{Rank: p.Rank, Message: fmt.Sprintf("panic: %v", p.Value)}}
		}
	}
	var notices []notice
	for _, r := range j.ranks {
		if r == nil {
			continue
		}
		e.Iteration = max(e.Iteration, r.done)
		if len(all) == 0 || e.failed(r.id) {
			continue
		}
		notices = append(notices, r.notice(e.first))
	}
	e.fill(notices)
	j.out0.Events = append(j.out0.Events, e)
}

// isInjected says whether the panic is the one this program makes. Others are its
// own mistakes, which starting again would hide.
func isInjected(p *mpicx.PanicError) bool {
	err, ok := p.Value.(runtime.Error)
	return ok && strings.Contains(string(p.Stack), ".lookUp(") && strings.Contains(err.Error(), "index out of range")
}

// panicOrigin is where the panic began: the first place below the oldest panic
// in the stack, as others are of functions that pass it on, that is not the
// runtime's.
func panicOrigin(stack []byte) string {
	text := string(stack)
	lines := strings.Split(text[max(0, strings.LastIndex(text, "\npanic("))+1:], "\n")
	for i := 2; i+1 < len(lines); i += 2 {
		if strings.HasPrefix(lines[i], "runtime.") {
			continue
		}
		name := lines[i][:max(0, strings.LastIndexByte(lines[i], '('))]
		where, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
		return fmt.Sprintf("%s %s", name[strings.LastIndexByte(name, '/')+1:], where[strings.LastIndexByte(where, '/')+1:])
	}
	return ""
}
