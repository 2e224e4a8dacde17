package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// releases notes that the rank releases a communicator. It is called by a panic too, which continues.
func (r *rank) releases(c *inst, failed *bool) {
	if v := recover(); v != nil {
		if _, thrown := asThrown(v); !thrown && !c.closed.Load() {
			r.raise(c, r.id, fmt.Sprintf("panic: %v", v), true, false)
		}
		defer panic(v)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.closed.Store(true)
	r.givenUp.Store(report{comm: c.name, rank: c.Rank()}, *failed)
}

// isReleased reports whether a rank has released c. A Close may then be a Release.
func (r *rank) isReleased(c *inst) bool {
	return slices.ContainsFunc(c.members, func(world int) bool {
		_, is := r.givenUp.Load(report{comm: c.name, rank: c.rankOf(world)})
		return is
	})
}

// shut closes a communicator. Close waits for all ranks. It may return an error that a peer has
// raised before, but no corruption of the communicator itself.
func (r *rank) shut(e *env, c *inst, watched bool) error {
	v := event{what: "Close", comm: c, begin: r.now(), quiet: !watched && e.in == nil} // inside a Try it may return nil in spite of an error
	v.err = c.Close(e.ctx)
	r.note(&v, e, false)
	switch {
	case v.err == nil:
		r.mu.Lock()
		c.closed.Store(true)
		r.mu.Unlock()
		if r.isReleased(c) {
			r.givenUp.Store(report{comm: c.name, rank: c.Rank()}, false)
		}
	case isVerdict(v.err):
		if isCorruption(v.err) && v.of == c.name {
			r.failf("Close", "on %s at rank %d returns a corruption of it, expected nil: %v", c.name, r.id, v.err)
		}
	default:
		r.failf("Close", "on %s at rank %d returns %v, expected nil or an error that all ranks have", c.name, r.id, v.err)
	}
	return v.err
}

// close closes a communicator in the middle of its block. Operations begun before end as if it were
// still open; operations begun afterwards fail.
func (r *rank) close(s *step, e *env, c *inst) error {
	n, me := c.Size(), c.Rank()
	in := []int64{0}
	var pending future.Waiter
	var dup *future.Future[*mpicx.Comm]
	var helper chan struct{}
	switch s.how {
	case closeRing, closeHelper:
		recv := mpicx.Recv(c.Comm, in, (me+n-1)%n, tagStep+s.id)
		send := mpicx.Send(c.Comm, []int64{int64(me)}, (me+1)%n, tagStep+s.id)
		pending = recv
		if s.how == closeHelper { // the helper ignores errors, which this goroutine handles
			helper = make(chan struct{})
			go func() {
				defer close(helper)
				<-recv.Done()
				<-send.Done()
			}()
		}
	case closeBarrier:
		pending = c.Barrier()
	case closeDup:
		dup = c.Dup()
		pending = dup
	case closeNever:
		pending = mpicx.Recv(c.Comm, in, (me+1)%n, tagNever)
	}
	var err error
	if s.has(r.id) {
		c.Release()
		r.releases(c, new(bool))
	} else {
		err = r.shut(e, c, helper != nil)
	}
	if helper != nil {
		<-helper
	}
	what := [...]string{"", "ring", "barrier", "Dup", "ring by a helper", "Recv of nothing"}[s.how]
	v := event{what: what + " over Close", comm: c, begin: r.now(), quiet: true}
	switch {
	case err != nil || pending == nil:
	case s.how == closeNever:
		ctx, cancel := context.WithTimeout(e.ctx, 50*tick)
		defer cancel()
		v.err = pending.Wait(ctx)
		if m, ok := v.err.(*mpicx.MPIError); ok && m.Class == mpicx.ClassComm && hasType[*mpicx.ProcFailedError](v.err) {
			return nil // of the rank that would send
		}
		r.note(&v, e, true)
		if v.err == nil {
			r.failf("P3", "rank %d receives on %s a message that nobody sent", r.id, c.name)
		}
		if errors.Is(v.err, context.DeadlineExceeded) {
			v.err = nil
		}
	default:
		v.err = pending.Wait(e.ctx)
		r.note(&v, e, false)
	}
	if err == nil {
		err = v.err
	}
	if err != nil {
		return err
	}
	if (s.how == closeRing || s.how == closeHelper) && in[0] != int64((me+n-1)%n) {
		r.failf("P3", "%s at rank %d: got %d, expected %d", v.what, r.id, in[0], (me+n-1)%n)
	}
	if dup != nil {
		if err := r.duplicate(s, e, c, dup); err != nil {
			return err
		}
	}
	if s.arg == 1 {
		return r.useClosed(e, c)
	}
	return nil
}

// duplicate uses a communicator whose making began before its parent was closed.
func (r *rank) duplicate(s *step, e *env, c *inst, dup *future.Future[*mpicx.Comm]) error {
	made, err := dup.Get(e.ctx)
	if err != nil {
		return err // like the Wait before, if another error has come
	}
	d := &inst{Comm: made, name: fmt.Sprintf("%s/c%d%s", c.name, s.id, e.path), parent: c, members: c.members}
	r.joins(d)
	v := event{what: "Allreduce", comm: d, begin: r.now(), quiet: true}
	out := []int64{0}
	v.err = mpicx.Allreduce(made, []int64{int64(made.Rank())}, out, mpicx.Sum).Wait(e.ctx)
	r.note(&v, e, false)
	if want := int64(made.Size() * (made.Size() - 1) / 2); v.err == nil && out[0] != want {
		r.failf("P3", "Allreduce on %s at rank %d: got %d, expected %d", d.name, r.id, out[0], want)
	}
	if v.err != nil && r.byHand {
		r.revoke(e, d)
	}
	return v.err
}

// useClosed checks that operations begun on a closed communicator end with an error that says that
// it is closed, or with an error that was pending before.
func (r *rank) useClosed(e *env, c *inst) error {
	for what, call := range map[string]func() error{
		"Barrier": func() error { return c.Barrier().Wait(e.ctx) },
		"Dup":     func() error { return c.Dup().Wait(e.ctx) },
		"Recv":    func() error { return mpicx.Recv(c.Comm, []int64{0}, c.Rank(), tagNever).Wait(e.ctx) },
		"Signal":  func() error { return c.Signal(e.ctx, errors.New("on a closed communicator")) },
		"Close":   func() error { return c.Close(e.ctx) },
	} {
		v := event{what: what, comm: c, begin: r.now(), quiet: true}
		v.err = call()
		if m, ok := v.err.(*mpicx.MPIError); ok && m.Op == what && m.Class == mpicx.ClassComm || v.err == mpicx.ErrRevoked && r.byHand {
			continue
		}
		r.note(&v, e, false)
		switch {
		case !isVerdict(v.err):
			r.failf("Close", "%s on %s at rank %d returns %v, expected one that says that it is closed", what, c.name, r.id, v.err)
		case v.of != c.name:
			return v.err
		}
	}
	return nil
}

func hasType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// pair sends a message from one rank to the next. The other ranks do nothing.
func (r *rank) pair(s *step, e *env, c *inst) error {
	from := s.id % c.Size()
	to := (from + 1) % c.Size()
	v := event{what: "pair", comm: c, begin: r.now(), quiet: true}
	in := []int64{0}
	switch {
	case from == to:
		return nil
	case c.Rank() == from:
		v.err = mpicx.Send(c.Comm, []int64{int64(s.id)}, to, tagStep+s.id).Wait(e.ctx)
	case c.Rank() == to:
		v.err = mpicx.Recv(c.Comm, in, from, tagStep+s.id).Wait(e.ctx)
		if v.err == nil && in[0] != int64(s.id) {
			r.failf("P3", "pair on %s at rank %d: got %d, expected %d", c.name, r.id, in[0], s.id)
		}
	default:
		return nil
	}
	r.note(&v, e, false)
	return v.err
}
