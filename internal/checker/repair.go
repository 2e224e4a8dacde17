package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/mpicx"
)

// repair runs a body that deaths may end. Then all living ranks agree on whether it has succeeded.
// If not, they shrink the communicator, after they have revoked it if it is not corrupted, and run
// the rest of the step on the smaller one.
func (r *rank) repair(s *step, e *env, c *inst) error {
	if r.byHand {
		return r.repairByHand(s, e, c)
	}
	err := r.all(s.body, e)
	if err == nil && !c.lost { // a rank that knows of a corruption repairs
		if err = r.agree(s, e, c); err == nil {
			return nil
		}
	}
	if !c.unwound && !isCorruption(err) {
		r.revoke(e, c)
	}
	c.lost, c.doubtful = true, false
	return r.shrink(s, e, c)
}

func isCorruption(err error) bool {
	_, ok := bare(err).(*mpicx.CommCorruptedError)
	return ok
}

func (r *rank) revoke(e *env, c *inst) {
	r.raise(c, r.id, fmt.Sprintf(revokedBy+"%d", c.Rank()), true, false)
	r.enlist(r.revoked, c)
	c.lost, c.doubtful = true, false
	v := event{what: "Revoke", comm: c, begin: r.now(), err: c.Revoke(e.ctx)}
	r.note(&v, e, false)
}

// agree agrees on a flag in which each rank clears one bit.
func (r *rank) agree(s *step, e *env, c *inst) error {
	v := event{what: "Agree", comm: c, begin: r.now()}
	flag, err := c.Agree(-1 &^ (1 << r.id)).Get(e.ctx)
	v.err = err
	r.note(&v, e, false)
	outcome := fmt.Sprintf("flag %#x", uint64(flag))
	if err != nil {
		outcome = "an error"
	} else if flag>>r.id&1 != 0 {
		r.failf("H5", "Agree on %s at rank %d returns %#x, in which this rank's bit is not cleared", c.name, r.id, uint64(flag))
	}
	r.outcome(fmt.Sprintf("H5: Agree %d%s on %s", s.id, e.path, c.name), outcome)
	return err
}

// shrink makes the smaller communicator, and determines its ranks.
func (r *rank) shrink(s *step, e *env, c *inst) error {
	v := event{what: "Shrink", comm: c, begin: r.now()}
	made, err := c.Shrink().Get(e.ctx)
	v.err = err
	r.note(&v, e, false)
	if err != nil {
		return err
	}
	return r.small(s, e, c, made)
}

// small runs the rest of the step on a communicator that was shrunk.
func (r *rank) small(s *step, e *env, c *inst, made *mpicx.Comm) error {
	d := &inst{Comm: made, name: fmt.Sprintf("%s/s%d%s", c.name, s.id, e.path), parent: c}
	ids := make([]int64, made.Size())
	inner := *e
	inner.scopes = append(e.scopes[:len(e.scopes):len(e.scopes)], d)
	r.enlist(r.scoped, d)
	v := event{what: "TryAll", comm: d, begin: r.now(), quiet: true}
	v.err = made.TryAll(e.ctx, func(ctx context.Context) error {
		return mpicx.Allgather(made, []int64{int64(r.id)}, ids).Wait(ctx)
	})
	r.note(&v, &inner, false)
	if v.err != nil {
		return v.err
	}
	for _, id := range ids {
		d.members = append(d.members, int(id))
	}
	if !slices.IsSorted(d.members) || d.rankOf(r.id) != made.Rank() {
		r.failf("H5", "%s has the ranks %v, rank %d is number %d of them: expected the old order", d.name, d.members, r.id, made.Rank())
	}
	r.outcome("H5: members of "+d.name, fmt.Sprint(d.members))
	r.excluded(c, d)
	r.insts = append(r.insts, d)
	inner.scopes = e.scopes
	inner.comms = maps.Clone(e.comms)
	inner.comms[s.id] = d
	return r.all(s.then, &inner)
}

// excluded checks that no rank of d was reported dead to this rank before.
func (r *rank) excluded(c, d *inst) {
	r.mu.Lock()
	events := r.events[r.id]
	r.mu.Unlock()
	for _, v := range events {
		if v.comm != c {
			continue
		}
		var told []int
		switch err := bare(v.err).(type) {
		case *mpicx.CommCorruptedError:
			told = err.Dead
		case *mpicx.ProcFailedError:
			told = err.Ranks
		}
		for _, dead := range told {
			if dead < len(c.members) && slices.Contains(d.members, c.members[dead]) {
				r.failf("H5", "%s has the ranks %v, though rank %d was told before that rank %d of %s had died", d.name, d.members, r.id, dead, c.name)
			}
		}
	}
}

// outcome notes a result that must be the same at all living ranks.
func (r *rank) outcome(of, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.units[of] == nil {
		r.units[of] = make(map[int]string)
	}
	r.units[of][r.id] = what
}
