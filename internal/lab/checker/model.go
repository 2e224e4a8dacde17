package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/mpicx"
)

// check compares what the ranks were told with the design rules.
func (h *history) check() {
	h.sameVerdicts()
	h.sameUnits()
	h.inTime()
	h.inScopes()
	h.onlyOnce()
	h.together()
	h.onlyTheDead()
}

// told is a verdict at one rank: the first call that returned it.
type told struct {
	key string
	at  *event
}

// verdicts returns the verdicts of each communicator at each rank, in the order in which the rank
// was told of them. Those of deaths alone are not compared: a rank that has died may have been told more.
func (h *history) verdicts() map[string]map[int][]told {
	all := make(map[string]map[int][]told)
	for r, events := range h.events {
		seen := make(map[string]bool)
		for i := range events {
			v := &events[i]
			if len(failuresOf(v.err)) == 0 || seen[v.of+v.key] || strings.HasPrefix(v.what, "Err ") || v.closed || v.listens {
				continue
			}
			seen[v.of+v.key] = true
			if all[v.of] == nil {
				all[v.of] = make(map[int][]told)
			}
			all[v.of][r] = append(all[v.of][r], told{v.key, v})
		}
	}
	return all
}

// within reports whether all errors of the verdict w were raised in a Try inside another, and are in v too:
// v is what the ranks that were told of w have made of it.
func (h *history) within(w, v told) bool {
	return !slices.ContainsFunc(failuresOf(w.at.err), func(f mpicx.Failure) bool {
		return !strings.Contains(v.key, f.Message) || !h.isInner(w.at.of, f)
	})
}

// isInner reports whether a failure was raised in a Try inside another on the communicator. If that is inside one on a
// derived communicator, the program does not see what it passes on.
func (h *history) isInner(comm string, f mpicx.Failure) bool {
	return h.inverted && isPassedOn(f.Message) || slices.ContainsFunc(h.raises(comm, f, false), func(r raise) bool { return len(r.place) > 1 })
}

// skips reports whether a rank that is told the verdict v need not be told that of w before: w was raised in
// a Try inside, which the rank has left or does not come to. What the others made of it is in v then, or an
// error of this rank's own is (T1), or a corruption has come. Nor need it if a corruption has ended a Guard.
func (h *history) skips(rank int, w, v told) bool {
	own := func(f mpicx.Failure) bool {
		return slices.ContainsFunc(h.raises(v.at.of, f, isCorruption(v.at.err)), func(r raise) bool { return r.world == rank })
	}
	return isPropagation(w.at.err) && (isCorruption(v.at.err) && h.guarded[w.at.of] || h.within(w, v) ||
		h.isInner(w.at.of, failuresOf(w.at.err)[0]) && (h.several || isCorruption(v.at.err) || slices.ContainsFunc(failuresOf(v.at.err), own)))
}

func failuresOf(err error) []mpicx.Failure {
	switch v := verdictOf(bare(err)).(type) {
	case *mpicx.PropagatedError:
		return v.Failures
	case *mpicx.CommCorruptedError:
		return v.Failures
	}
	return nil
}

// P1, P2: all ranks are told of the same verdicts in the same order, as far as they have asked.
func (h *history) sameVerdicts() {
	for comm, byRank := range h.verdicts() {
		longest := -1
		for r, seq := range byRank {
			if longest < 0 || len(seq) > len(byRank[longest]) {
				longest = r
			}
		}
		for r, seq := range byRank {
			all := byRank[longest]
			for i, j := 0, 0; i < len(seq) && j < len(all); {
				v, want := seq[i], all[j]
				switch {
				case v.key == want.key, (h.dead[r] || h.dead[longest]) && withoutDead(v.key) == withoutDead(want.key):
					i, j = i+1, j+1
				case h.skips(r, want, v):
					j++
				case h.skips(longest, v, want):
					i++
				default:
					h.failures = append(h.failures, fmt.Sprintf("P2: ranks are told of different verdicts: number %d of %s is %s at rank %d and %s at rank %d",
						i+1, comm, v.key, r, want.key, longest))
					return
				}
			}
		}
	}
}

// withoutDead returns the key of a verdict as a rank may have been told it before it died.
func withoutDead(key string) string {
	key, _, _ = strings.Cut(key, " dead ")
	return key
}

// TryAll ends alike at all ranks that are not told of an error from outside. Agreements end alike
// at all living ranks.
func (h *history) sameUnits() {
	for name, byRank := range h.units {
		first, outcome := -1, ""
		for r, o := range byRank {
			if h.dead[r] {
				continue
			}
			if first < 0 {
				first, outcome = r, o
			} else if o != outcome {
				h.failures = append(h.failures, fmt.Sprintf("%s is %s at rank %d and %s at rank %d", name, outcome, first, o, r))
				return
			}
		}
	}
}

// together checks the other half of P2: if a rank raises an error before it was told of a verdict,
// the error is in that verdict or an earlier one.
func (h *history) together() {
	verdicts := h.verdicts()
	for _, all := range h.raised {
		for _, e := range all {
			if !e.certain || h.revoked[e.comm] { // there may have been no rank to tell
				continue
			}
			seq := verdicts[e.comm][e.world]
			text := fmt.Sprintf("rank %d", e.rank)
			for _, v := range seq {
				if strings.Contains(v.key, e.what.message) && strings.Contains(v.key, text) {
					break
				}
				if v.at.end < e.at || strings.HasPrefix(v.key, "corrupted") || strings.Contains(v.key, text) {
					continue // in the last case this rank has taken part by an earlier error
				}
				if opened := h.opened(e.comm, v.key); h.silent(e, opened) {
					h.failures = append(h.failures, fmt.Sprintf("P2: an error is in a later verdict than it ought to be: rank %d raises %q on %s before it is told of %s",
						e.world, e.what.message, e.comm, v.key))
					return
				}
			}
		}
	}
}

// opened returns when the first error of a verdict was raised.
func (h *history) opened(comm, key string) int64 {
	at := int64(1) << 62
	for what, all := range h.raised {
		if what.comm == comm && strings.Contains(key, what.message) {
			for _, a := range all {
				at = min(at, a.at)
			}
		}
	}
	return at
}

// silent reports whether no call of e's rank after the time since, when an error was raised on e's
// communicator, may have taken part in resolving that error although it reported something else
// ("What happens to an error" in docs/ARCHITECTURE.md, step 2).
func (h *history) silent(e raise, since int64) bool {
	return !slices.ContainsFunc(h.events[e.world], func(v event) bool {
		if v.end < since || v.end > e.at {
			return false
		}
		if v.err == nil {
			return !v.quiet || !v.comm.derivedFrom(e.comm)
		}
		return v.of != e.comm || !v.quiet // calls after the report of one verdict belong to the next
	})
}
