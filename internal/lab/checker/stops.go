package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// addStops adds steps that ask for a stop, and calls of Stopping, to a program: before operations of
// all ranks of a communicator, on the same one. Whole has the communicators of all living ranks: a
// program may end where they stop.
func (g *generator) addStops(steps []*step, whole map[int]bool) (all []*step) {
	for _, s := range steps {
		s.body = g.addStops(s.body, g.wholeInside(s, whole))
		s.afterRepair = g.addStops(s.afterRepair, map[int]bool{s.id: true})
		if s.kind == doOp || s.kind == doPair {
			if g.IntN(4) == 0 {
				p := g.step(doStop, s.comm)
				p.ranks = g.some()
				all = append(all, p)
			}
			for range g.IntN(3) {
				p := g.step(doStopping, s.comm)
				if whole[s.comm] {
					p.how = g.IntN(2)
				}
				all = append(all, p)
			}
		}
		all = append(all, s)
	}
	return all
}

func (g *generator) wholeInside(s *step, whole map[int]bool) map[int]bool {
	switch {
	case s.kind == doDerive && s.absorb: // a rank that is told of an error in place of the stop continues
		return nil
	case s.kind != doDerive || s.how != dup || !whole[s.comm]:
		return whole
	}
	inside := map[int]bool{s.id: true}
	for c := range whole {
		inside[c] = true
	}
	return inside
}

// What a rank does with a StopError.
const (
	stopIgnored = iota
	stopReturned
)

// asked is a request to stop.
type asked struct {
	comm  *inst
	world int
	why   string
	when  time.Time // fake
}

// stopCall is a call of Stopping at all ranks.
type stopCall struct {
	comm  *inst
	what  string
	begun time.Time // by the first rank
}

// stop asks for a stop.
func (r *rank) stop(s *step, e *env, c *inst) {
	time.Sleep(tick) // by then each rank has set its error handler
	why := fmt.Sprintf("stop%d%s of rank %d", s.id, e.path, r.id)
	r.mu.Lock()
	r.stops = append(r.stops, asked{c, r.id, why, time.Now()})
	r.mu.Unlock()
	if err := c.Stop(e.ctx, errors.New(why)); err != nil {
		r.failf("Stop", "on %s at rank %d returns %v", c.name, r.id, err)
	}
}

// stopping calls Stopping.
func (r *rank) stopping(s *step, e *env, c *inst) error {
	what := fmt.Sprintf("Stopping: number %d%s on %s", s.id, e.path, c.name)
	r.mu.Lock()
	if _, ok := r.stopCalls[what]; !ok {
		r.stopCalls[what] = stopCall{c, what, time.Now()}
	}
	r.mu.Unlock()
	v := event{what: "Stopping", comm: c, begin: r.now(), quiet: true}
	r.expects.Store(report{comm: c.name, rank: c.Rank()}, true) // once a stop was asked for, it needs all ranks
	v.err = c.Stopping(e.ctx)
	err := v.err
	stop, stops := errors.AsType[*mpicx.StopError](err)
	if stops {
		v.err = nil
		r.stopsFor(c, stop)
	}
	r.note(&v, e, false)
	switch {
	case stops:
		r.outcome(what, stop.Error())
	case err == nil:
		r.outcome(what, "nil")
	}
	if stops && s.how == stopIgnored {
		return nil
	}
	return err
}

// stopsFor checks that somebody has asked for a stop.
func (r *rank) stopsFor(c *inst, stop *mpicx.StopError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.stops {
		if a.why == stop.Why && strings.HasSuffix(a.why, fmt.Sprintf(" of rank %d", a.world)) {
			return
		}
	}
	r.failures = append(r.failures, fmt.Sprintf("Stopping: on %s at rank %d returns %v, for which nobody has asked", c.name, r.id, stop))
}

// isStop reports whether err is a StopError of c: somebody has asked for it there, or on a communicator
// that c is derived from.
func (r *rank) isStop(err error, c *inst) bool {
	stop, is := errors.AsType[*mpicx.StopError](err)
	r.mu.Lock()
	defer r.mu.Unlock()
	return is && slices.ContainsFunc(r.stops, func(a asked) bool { return a.why == stop.Why && c.inherits(a.comm) })
}

// mayStop reports whether err is a StopError of another communicator that counts as one of c: a stop was
// asked for there too.
func (r *rank) mayStop(err error, c *inst) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return hasType[*mpicx.StopError](err) && slices.ContainsFunc(r.stops, func(a asked) bool { return c.inherits(a.comm) })
}

// inTime checks that all ranks stop soon after one has asked for it. A spare that was taken learns of it by the
// next call of another rank.
func (h *history) inTime() {
	for what, call := range h.stopCalls {
		if !strings.Contains(fmt.Sprint(h.units[what]), ":nil") {
			continue
		}
		for _, a := range h.stops {
			if !h.dead[a.world] && call.comm.derivedFrom(a.comm.name) && call.begun.After(a.when.Add(long)) {
				h.failures = append(h.failures, fmt.Sprintf("%s returns nil, begun %v after %q was asked for on %s", what, call.begun.Sub(a.when), a.why, a.comm.name))
				return
			}
		}
	}
}
