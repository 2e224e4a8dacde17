package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// errAllDead is how a job ends if nobody is left to say how.
var errAllDead = errors.New("the processes of all ranks died")

// conclude returns why the job ended without a solution. err is what mpicx.Run
// says, which knows no more of ranks that died than their peers, and does not
// know that the peers of a rank that panicked did without it.
func (t *trial) conclude(err error) error {
	finished := slices.ContainsFunc(t.ranks, func(r *rank) bool { return r != nil && r.finished })
	switch {
	case err == nil && !finished:
		return errAllDead
	case finished && t.cfg.recovery == recoverShrink && t.isInjected(err):
		return nil
	}
	return err
}

// isEnd says whether err is that of a communicator that is of no use any more.
func isEnd(err error) bool {
	_, corrupted := errors.AsType[*mpicx.CommCorruptedError](err)
	_, panicked := errors.AsType[*mpicx.PanicError](err)
	return corrupted || panicked || errors.Is(err, errAllDead)
}

// noteCorruption adds the event that ended mpicx.Run with err.
func (t *trial) noteCorruption(err error) {
	e := event{Corrupted: true, end: time.Now()}
	var all []mpicx.Failure
	if c, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
		all, e.Dead = c.Failures, slices.Clone(c.Dead)
	}
	for _, r := range t.ranks {
		if r != nil && !r.died.IsZero() && !t.didWithout(r.id) && !slices.Contains(e.Dead, r.id) {
			e.Dead = append(e.Dead, r.id) // its peers had gone before they knew
		}
	}
	slices.Sort(e.Dead)
	e.first = t.firstTime(all, e.Dead)
	e.Failures = failuresOf(all)
	if p, ok := errors.AsType[*mpicx.PanicError](err); ok {
		e.Panic = panicOrigin(p.Stack)
		if len(all) == 0 { // nobody else was there to be told
			e.Failures = []failure{{Rank: p.Rank, Message: fmt.Sprintf("panic: %v", p.Value)}}
		}
	}
	var notices []notice
	for _, r := range t.ranks {
		if r == nil {
			continue
		}
		e.Iteration = max(e.Iteration, r.done)
		if len(all)+len(e.Dead) > 0 && !e.failed(r.id) && !slices.Contains(e.Dead, r.id) {
			notices = append(notices, r.notice())
		}
	}
	e.fill(notices)
	for _, r := range t.ranks {
		if r != nil {
			r.out.Events = append(r.out.Events, e)
		}
	}
}

// didWithout says whether the others went on without the rank.
func (t *trial) didWithout(id int) bool {
	return slices.ContainsFunc(t.ranks, func(r *rank) bool {
		return r != nil && slices.ContainsFunc(r.out.Events, func(e event) bool { return e.Takeover != nil && slices.Contains(e.Dead, id) })
	})
}

// isInjected says whether err, of mpicx.Run, is nothing but what this program
// makes. Anything else is its own mistake, which going on would hide.
func (t *trial) isInjected(err error) bool {
	if err == nil || errors.Is(err, errAllDead) {
		return true
	}
	ranks, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, err := range ranks.Unwrap() {
		if p, ok := errors.AsType[*mpicx.PanicError](err); ok {
			if !isInjectedPanic(p) {
				return false
			}
			continue
		}
		c, ok := errors.AsType[*mpicx.CommCorruptedError](err)
		if !ok || slices.ContainsFunc(c.Dead, func(d int) bool { return t.ranks[d] == nil }) {
			return false // with -tags mpi: the process is gone indeed
		}
	}
	return true
}

// isInjectedPanic says whether the panic is the one this program makes.
func isInjectedPanic(p *mpicx.PanicError) bool {
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
