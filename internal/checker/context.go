package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// long is longer than any message takes.
const long = 1000 * tick

// work computes until the context ends, or for long. Then no peer may have raised an error
// that this rank has not been told of (P8).
func (r *rank) work(e *env) {
	begin := time.Now()
	select {
	case <-e.ctx.Done():
		r.excused(e)
		return
	case <-time.After(long):
	}
	if len(e.scopes) == 0 || e.guard {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, all := range r.raised {
		for _, a := range all {
			if !a.certain || r.revoked[a.comm] || a.world == r.id || r.dead[a.world] || !e.scopes[len(e.scopes)-1].derivedFrom(a.comm) || a.when.After(begin.Add(long/2)) {
				continue
			}
			if !r.knows(what, math.MaxInt64) && !r.lost(what.comm) {
				r.failures = append(r.failures, fmt.Sprintf("P8: the context of a rank that computes goes on: of rank %d, %v after rank %d has raised %q on %s",
					r.id, time.Since(a.when), a.world, what.message, a.comm))
				return
			}
		}
	}
}

// excused checks that there is an error because of which the context of a Try has
// ended: one that this rank was not told of before, or a death. A rank that waits in a
// TryAll for the others, inside a Try of another communicator, passes an error of that on.
func (r *rank) excused(e *env) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.dead)+len(r.gone) > 0 || r.planned || len(e.scopes) == 0 || e.outer == nil {
		return
	}
	for what, all := range r.raised {
		for _, c := range e.scopes {
			own := c.derivedFrom(what.comm)
			if (own || all[0].reaches(c)) && !(own && r.surelyLost(what.comm)) && !r.knows(what, e.begun) {
				return
			}
		}
	}
	r.failures = append(r.failures, fmt.Sprintf("P8: a context ends for nothing: of rank %d, in a scope of %s that began at %d",
		r.id, e.scopes[len(e.scopes)-1].name, e.begun))
}

// reaches says whether another member of c is a member of the communicator of the error.
func (a raise) reaches(c *inst) bool {
	return slices.ContainsFunc(a.members, func(r int) bool { return r != c.members[c.Rank()] && slices.Contains(c.members, r) })
}

// knows says whether the rank had been told of a report before. The caller holds mu.
func (r *rank) knows(what report, before int64) bool {
	return slices.ContainsFunc(r.events[r.id], func(v event) bool {
		var failures []mpicx.Failure
		switch err := bare(v.err).(type) {
		case *mpicx.PropagatedError:
			failures = err.Failures
		case *mpicx.CommCorruptedError:
			failures = err.Failures
		}
		return v.end < before && (v.of == what.comm || v.of == "") &&
			slices.ContainsFunc(failures, func(f mpicx.Failure) bool { return f.Rank == what.rank && f.Message == what.message })
	})
}

// lost says whether a communicator may be corrupted, as far as the rank knows: errors of it
// that are not resolved by then are not told. The caller holds mu, for surelyLost as well.
func (r *rank) lost(comm string) bool {
	return r.has(comm, func(c *inst) bool { return c.lost || c.unwound })
}

// surelyLost says whether the rank knows that a communicator is corrupted.
func (r *rank) surelyLost(comm string) bool {
	return r.has(comm, func(c *inst) bool { return c.lost && !c.doubtful || c.unwound })
}

func (r *rank) has(comm string, is func(*inst) bool) bool {
	return slices.ContainsFunc(r.insts, func(c *inst) bool { return c.name == comm && is(c) })
}
