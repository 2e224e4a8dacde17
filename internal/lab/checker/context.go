package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// long is longer than any message takes.
const long = 1000 * tick

// work computes until the context ends, or for the time long. After that time, this rank must have
// been told of every error that a peer had raised by the middle of it (P8).
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

// excused checks that an error or a death has ended the context of a Try. This rank was not told of
// the error before. A rank that waits in a TryAll for the others, inside a Try of another
// communicator, passes on an error of that communicator.
func (r *rank) excused(e *env) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.dead)+len(r.gone) > 0 || r.planned || len(e.scopes) == 0 || e.outer == nil || e.scopes[len(e.scopes)-1].unwound {
		return
	}
	for what, all := range r.raised {
		for _, c := range e.scopes {
			own := c.derivedFrom(what.comm)
			if (own || all[0].reaches(c)) && !(own && r.lost(what.comm)) && !r.knows(what, e.begun) {
				return
			}
		}
	}
	r.failures = append(r.failures, fmt.Sprintf("P8: a context ends for nothing: of rank %d, in a scope of %s that began at %d",
		r.id, e.scopes[len(e.scopes)-1].name, e.begun))
}

// reaches reports whether another member of c is also a member of the error's communicator.
func (a raise) reaches(c *inst) bool {
	return slices.ContainsFunc(a.members, func(r int) bool { return r != c.members[c.Rank()] && slices.Contains(c.members, r) })
}

// knows reports whether the rank was told of a report before the given time. Err, and a goroutine that
// may have outlived its scope, leave the error where it is. The caller holds mu.
func (r *rank) knows(what report, before int64) bool {
	return slices.ContainsFunc(r.events[r.id], func(v event) bool {
		return v.end < before && v.of == what.comm && !strings.HasPrefix(v.what, "Err on ") && !v.listens &&
			slices.ContainsFunc(failuresOf(v.err), func(f mpicx.Failure) bool { return f.Rank == what.rank && f.Message == what.message })
	})
}

// lost reports whether a communicator may be corrupted, as far as the rank knows. Errors on it that
// were not resolved before that are not told. The caller holds mu.
func (r *rank) lost(comm string) bool {
	return r.has(comm, func(c *inst) bool { return c.lost || c.unwound })
}

func (r *rank) has(comm string, is func(*inst) bool) bool {
	return slices.ContainsFunc(r.insts, func(c *inst) bool { return c.name == comm && is(c) })
}
