package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// group runs a step's goroutines. Its error is that of the first one that fails.
func (r *rank) group(s *step, e *env, c *inst) error {
	var child *inst
	if slices.Contains(s.crew, crewChild) {
		v := event{what: "Dup", comm: c, begin: r.now(), quiet: true}
		made, err := c.Dup().Get(e.ctx)
		v.err = err
		if r.note(&v, e, false); err != nil {
			return err
		}
		child = &inst{Comm: made, name: fmt.Sprintf("%s/g%d%s", c.name, s.id, e.path), parent: c, members: c.members}
		r.joins(child)
	}
	g, ctx := new(errgroup.Group), e.ctx
	if s.stops {
		g, ctx = errgroup.WithContext(ctx)
	}
	var mu sync.Mutex
	var failed []error                        // by goroutines of the group
	over, end := context.WithCancelCause(ctx) // when those have ended that end by themselves
	defer end(nil)
	var finite sync.WaitGroup
	for k, member := range s.crew {
		m := &crewmate{r, s, e.besides(ctx, 1000+16*s.id+k), c, child, k, over}
		m.e.group = func(err error) bool {
			if child != nil && isVerdict(err) {
				return r.ownerOf(err, child) == child
			}
			if err == nil || isVerdict(err) || strings.HasPrefix(err.Error(), gone) && e.chained(c) {
				return false // an error has ended the context: it ends the operation too (T1)
			}
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(failed, func(by error) bool { return errors.Is(err, by) })
		}
		if member < crewStop {
			finite.Add(1)
		}
		g.Go(func() (err error) {
			defer func() {
				mu.Lock()
				if err != nil {
					failed = append(failed, err)
				}
				mu.Unlock()
				if member < crewStop {
					finite.Done()
				}
			}()
			defer future.Catch(&err)
			time.Sleep(s.late(r.id, k))
			return m.do(member)
		})
	}
	go func() {
		finite.Wait()
		end(errOver)
	}()
	err := g.Wait()
	ofChild := child != nil && r.ownerOf(err, child) == child
	if isVerdict(err) && !ofChild { // now this goroutine knows
		v := event{what: "group", comm: c, begin: r.now(), err: err}
		r.note(&v, e, false)
	}
	return err
}

// noteInGroup is note, unless the error is that with which a group has ended its context. Then it returns
// false.
func (r *rank) noteInGroup(v *event, e *env) bool {
	if e.group != nil && e.group(v.err) {
		return false
	}
	r.note(v, e, false)
	return true
}

// crewmate is one goroutine of a group.
type crewmate struct {
	*rank
	s     *step
	e     *env
	c     *inst
	child *inst // of a crewChild
	k     int
	over  context.Context // ends when those have ended that end by themselves
}

func (m *crewmate) do(member int) error {
	const child = -1 // the variable
	part := &step{id: 1000 + 16*m.s.id + m.k, kind: doOp, comm: m.s.comm, outside: m.s.outside}
	switch member {
	case crewOp:
		part.arg = opBarrier
		return m.operate(part, m.e, m.c)
	case crewRing:
		part.arg = opRing
		return m.operate(part, m.e, m.c)
	case crewTry:
		part.arg, part.delay = opRing, nil
		try := &step{id: part.id, kind: doScope, how: try, comm: m.s.comm, body: []*step{part}}
		return m.scope(try, m.e, m.c)
	case crewChild:
		part.arg, part.comm = opRing, child
		body := []*step{part}
		if m.s.arg == 1 {
			body = append(body, &step{id: part.id, kind: doRaise, how: byReturn, comm: child, ranks: m.s.ranks})
		}
		all := &step{id: part.id, kind: doScope, how: tryAll, comm: child, body: body}
		m.e.comms = map[int]*inst{child: m.child}
		return m.scope(all, m.e, m.child)
	case crewRaise:
		if m.s.has(m.id) {
			return m.raiseBy(m.s, m.e, m.c)
		}
		return nil
	case crewStop:
		<-m.over.Done()
		if err := m.e.ctx.Err(); err != nil {
			return fmt.Errorf("%s, at %d: %w", gone, m.now(), err)
		}
		return nil
	case crewErr:
		return m.ask("Err", m.c.Err)
	}
	recv := mpicx.Recv(m.c.Comm, []int64{0}, m.c.Rank(), tagSelf)
	if member == crewTest {
		return m.ask("Test", func() error {
			done, err := recv.Test()
			if done && err == nil {
				m.failf("P3", "rank %d receives on %s a message that nobody sent", m.id, m.c.name)
			}
			return err
		})
	}
	ctx := m.over
	if m.s.outside && m.e.chained(m.c) {
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(m.outside)
		defer context.AfterFunc(m.over, func() {
			// By hand, a communicator around may be revoked: that ends the context alone.
			if cause := context.Cause(m.over); cause == errOver || m.e.group(cause) || m.byHand {
				end(errOver)
			}
		})()
		defer end(nil)
	}
	return m.told("Recv of nothing", func() error { return recv.Wait(ctx) })
}

// gone begins the message of a function or goroutine that has found its context ended.
const gone = "gone"

// ask asks for an error until there is one, or the others have ended.
func (m *crewmate) ask(what string, ask func() error) error {
	for range 10 * long / tick {
		ended := m.over.Err() != nil
		err := m.told(what, ask)
		switch cause := context.Cause(m.over); {
		case err != nil || ended && (cause == errOver || m.e.group(cause)):
			return err
		case ended && (m.byHand || !m.e.chained(m.c) || !m.e.in.plain()): // by hand: of a revoked communicator around
			return fmt.Errorf("%s, at %d: %w", gone, m.now(), m.over.Err())
		}
		time.Sleep(tick)
	}
	if m.over.Err() == nil { // the others wait: that is a hang
		return nil
	}
	m.failf("T1", "%s on %s at rank %d finds no error, though the context has ended: %v", what, m.c.name, m.id, context.Cause(m.over))
	return nil
}

// told calls a function that the end of the others ends.
func (m *crewmate) told(what string, call func() error) error {
	v := event{what: what + " in a goroutine", comm: m.c, begin: m.now()}
	v.err = call()
	switch {
	case v.err == nil || !isVerdict(v.err) && errors.Is(v.err, errOver):
		return nil
	default:
		m.noteInGroup(&v, m.e)
	}
	return v.err
}
