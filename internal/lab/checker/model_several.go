package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mpicx/go-mpicx/mpicx"
)

// inScopes checks what goroutines are told: an error belongs to the scope that handles it.
func (h *history) inScopes() {
	over := h.over()
	for r, events := range h.events {
		for _, v := range events {
			for _, rule := range []func(event, int, map[error]int64) string{h.asItsScope, h.notOver, h.notPast} {
				if text := rule(v, r, over[r]); text != "" {
					h.failures = append(h.failures, fmt.Sprintf("%s (%s at rank %d)", text, v.what, r))
					return
				}
			}
		}
	}
}

func propagated(v event) bool { return v.of != "" && isPropagation(v.err) }

// handles returns the innermost Try or TryAll around an event on the communicator of that name. For
// the end of one that does not catch its error, it is the one around.
func (v event) handles(comm string) *running {
	in := v.in
	if v.scope && in.comm.name == comm && !in.catch {
		in = in.around
	}
	return in.try(comm)
}

// ownerAt returns the scope around in to which a verdict belongs. If its errors were raised at several places,
// this is the outermost.
func (h *history) ownerAt(in *running, comm string, err error) (owner *running) {
	for _, f := range failuresOf(err) {
		raises := h.raises(comm, f, false)
		for _, a := range raises {
			if !slices.Equal(a.place, raises[0].place) { // the same text, at two places
				return nil
			}
			if o := in.owner(comm, a.place); o != nil && (owner == nil || len(o.place(comm)) < len(owner.place(comm))) {
				owner = o
			}
		}
	}
	return owner
}

// skewed reports whether a failure was raised in a Try that is neither around a place nor inside it: another
// rank had left that Try already.
func (h *history) skewed(place []string, comm string, f mpicx.Failure) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.raises(comm, f, false), func(a raise) bool {
		common := min(len(a.place), len(place))
		return !slices.Equal(a.place[:common], place[:common])
	})
}

// T1, T2, T3: what a goroutine is told inside a scope is what the scope returns.
func (h *history) asItsScope(v event, _ int, _ map[error]int64) string {
	if !h.several || h.inverted || h.byHand || v.scope && v.in.catch {
		return ""
	}
	if propagated(v) {
		in := v.owner
		switch {
		case in == nil || in.ended == 0 || !in.keeps() || v.listens && v.in.begun > in.ended:
		case in.of == v.of && in.key != v.key && !strings.HasPrefix(in.key, "corrupted") && !h.within(told{v.key, &v}, told{key: in.key}):
			return fmt.Sprintf("T1: a goroutine is told %s in a scope of %s that returns %s", v.key, v.of, in.key)
		case !in.failed && v.end < in.returned:
			return fmt.Sprintf("T1: a goroutine is told %s in a scope of %s that returns nil", v.key, v.of)
		}
	}
	in := v.in
	if v.listens && v.of == "" && !isVerdict(v.err) && !h.breaks(v.comm) && in != nil && in.ended > 0 && in.how != guard &&
		v.begin < in.returned && !(errors.Is(v.err, errOver) && v.end < in.returned) && strings.HasPrefix(in.key, "[") && v.comm.derivedFrom(in.of) {
		return fmt.Sprintf("T3: a goroutine is told %v, and its scope returns %s", v.err, in.key)
	}
	return ""
}

// over returns when each verdict was over, for each rank: when the scope that handles it had
// returned, or, outside of scopes, when it was told first (T4). A verdict with the same failures may follow:
// another rank has raised them again.
func (h *history) over() []map[error]int64 {
	all := make([]map[error]int64, len(h.events))
	for r, events := range h.events {
		all[r] = make(map[error]int64)
		for _, v := range events {
			if !propagated(v) || strings.HasPrefix(v.what, "Err ") || v.beside && !v.scope || v.handles(v.of) != nil && !(v.scope && v.in.catch && v.in.comm.name == v.of) {
				continue
			}
			for _, w := range events {
				if _, ok := all[r][verdictOf(w.err)]; !ok && w.of == v.of && w.key == v.key && w.end <= v.end {
					all[r][verdictOf(w.err)] = v.end
				}
			}
		}
	}
	return all
}

// T3: what begins when an error is over does not end with it.
func (h *history) notOver(v event, _ int, over map[error]int64) string {
	if !propagated(v) || strings.HasPrefix(v.what, "Err ") || strings.HasPrefix(v.what, "group ") || strings.Contains(v.key, revokedBy) {
		return ""
	}
	begin := v.begin
	if v.beside && v.in != nil {
		begin = v.in.begun // the error may be its scope's
	}
	if at, ok := over[verdictOf(v.err)]; ok && begin > at {
		return fmt.Sprintf("P1: a verdict is told twice: %s, to what was begun after the first time", v.key)
	}
	return ""
}

// breaks reports whether a rank has corrupted c, or a communicator that it is derived from. A Wait may wait
// for that verdict until its context ends.
func (h *history) breaks(c *inst) bool {
	for what := range h.raised {
		if what.corrupt && c.derivedFrom(what.comm) {
			return true
		}
	}
	return false
}

// T1: no operation stays pending when an error has come, whichever its context.
func (h *history) notPast(v event, r int, _ map[error]int64) string {
	if !v.listens || isVerdict(v.err) || h.byHand || !v.outside || h.breaks(v.comm) {
		return ""
	}
	for _, end := range h.events[r] {
		if end.scope && propagated(end) && v.comm.derivedFrom(end.of) && v.begin < end.in.returned && end.end < v.end {
			return fmt.Sprintf("T1: an operation that began before a scope returned %s is still pending", end.key)
		}
	}
	return ""
}

// onlyOnce checks that each error is in one verdict, unless all that is in it was raised again in a Try
// around, and in none if it came after another (T2).
func (h *history) onlyOnce() {
	in := make(map[report]told)
	for _, events := range h.events {
		for _, v := range events {
			if !propagated(v) {
				continue
			}
			for _, f := range failuresOf(v.err) {
				raised := h.raises(v.of, f, false)
				if len(raised) != 1 || strings.HasPrefix(raised[0].what.message, "mpicx: ") { // several may have these words
					continue
				}
				if raised[0].never && !h.inverted {
					h.failures = append(h.failures, fmt.Sprintf("T2: an error is sent though another has come before: that of rank %d on %s: %q is in %s", raised[0].world, v.of, f.Message, v.key))
					return
				}
				what := raised[0].what
				now := told{v.key, &v}
				if before, ok := in[what]; ok && before.key != now.key && !h.within(before, now) && !h.within(now, before) && !h.inverted {
					h.failures = append(h.failures, fmt.Sprintf("P1: an error is in two verdicts: %q of rank %d on %s in %s and %s", f.Message, raised[0].world, v.of, before.key, v.key))
					return
				}
				in[what] = now
			}
		}
	}
}
