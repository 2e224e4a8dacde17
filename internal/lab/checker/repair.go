package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// repair runs a body that deaths may end. Then all living ranks agree on whether it has succeeded.
// If not, they shrink or replace the communicator, after they have revoked it if it is not corrupted,
// and run the rest of the step on the one that this makes.
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
	c.lost = true
	return r.remake(s, e, c)
}

func isCorruption(err error) bool {
	_, ok := bare(err).(*mpicx.CommCorruptedError)
	return ok
}

func (r *rank) revoke(e *env, c *inst) {
	r.raise(c, r.id, fmt.Sprintf(revokedBy+"%d", c.Rank()), true, false)
	r.enlist(r.revoked, c)
	c.lost = true
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

// remake makes the communicator of the survivors or, if the step replaces and there are enough spares,
// one of the same size, and runs the rest of the step on it.
func (r *rank) remake(s *step, e *env, c *inst) error {
	if s.replace {
		made, err := r.made("Replace", e, c, c.Replace)
		_, few := errors.AsType[*mpicx.SpareError](err)
		if err == nil || few {
			r.outcome(fmt.Sprintf("R1: Replace %d on %s", s.id, c.name), fmt.Sprint(err))
		}
		if err == nil {
			// No error of c is an error of what Replace has made.
			return r.after(s, e, c, &inst{Comm: made, name: replacedName(s), repair: s.id}, r.replaced)
		} else if !few {
			return err
		}
	}
	made, err := r.made("Shrink", e, c, c.Shrink)
	if err != nil {
		return err
	}
	return r.after(s, e, c, &inst{Comm: made, name: fmt.Sprintf("%s/s%d%s", c.name, s.id, e.path), parent: c, repair: s.id}, r.shrunk)
}

// replacedName names what Replace makes in a step. Spares know no more of it.
func replacedName(s *step) string { return fmt.Sprintf("r%d", s.id) }

func (r *rank) made(what string, e *env, c *inst, call func() *future.Future[*mpicx.Comm]) (made *mpicx.Comm, err error) {
	do := func() error {
		made, err = call().Get(e.ctx)
		return err
	}
	if r.byHand {
		err = r.untilNoVerdict(what, e, c, do, func(error) {})
		return made, err
	}
	v := event{what: what, comm: c, begin: r.now()}
	v.err = do()
	r.note(&v, e, false)
	return made, err
}

// meet has all ranks of d tell each other which they are. It returns the number of the step that has
// made d, which spares do not know.
func (r *rank) meet(ctx context.Context, d *inst, step int) (int, error) {
	const width = 3
	all := make([]int, width*d.Size())
	err := d.TryAll(ctx, func(ctx context.Context) error {
		return mpicx.Allgather(d.Comm, []int{r.id, step, d.Incarnation()}, all).Wait(ctx)
	})
	if err != nil {
		return 0, err
	}
	for it := range slices.Chunk(all, width) {
		d.members, d.taken = append(d.members, it[0]), append(d.taken, it[2])
		step = max(step, it[1])
	}
	return step, nil
}

// after runs the rest of the step on d, which was made from c. Check checks its ranks.
func (r *rank) after(s *step, e *env, c, d *inst, check func(c, d *inst)) error {
	inner := *e
	inner.scopes = append(e.scopes[:len(e.scopes):len(e.scopes)], d)
	r.enlist(r.scoped, d)
	v := event{what: "TryAll", comm: d, begin: r.now(), quiet: true}
	_, v.err = r.meet(e.ctx, d, s.id)
	r.note(&v, &inner, false)
	if v.err != nil {
		return v.err
	}
	check(c, d)
	r.outcome("H5: members of "+d.name, fmt.Sprint(d.members, d.taken))
	r.excluded(c, d)
	r.joins(d)
	inner.scopes = e.scopes
	inner.comms = maps.Clone(e.comms)
	inner.comms[s.id] = d
	return r.all(s.afterRepair, &inner)
}

// shrunk checks that the ranks of d are ranks of c in the same order.
func (r *rank) shrunk(c, d *inst) {
	next := 0
	for _, id := range d.members {
		for next < len(c.members) && c.members[next] != id {
			next++
		}
		next++
	}
	if next > len(c.members) || d.rankOf(r.id) != d.Rank() {
		r.failf("H5", "%s has the ranks %v, rank %d is number %d of them: expected ranks of %v in this order", d.name, d.members, r.id, d.Rank(), c.members)
	}
}

// replaced checks that each rank of c is in its place in d, or has died and a new rank is there.
func (r *rank) replaced(c, d *inst) {
	fits := len(d.members) == len(c.members) && d.rankOf(r.id) == d.Rank()
	var fresh []int
	for place := 0; fits && place < len(d.members); place++ {
		taken := 0
		if d.members[place] != c.members[place] {
			fresh, taken = append(fresh, place), 1
			r.mu.Lock()
			r.claims = append(r.claims, claim{c.members[place], "Replace"})
			r.mu.Unlock()
			fits = !slices.Contains(c.members, d.members[place])
		}
		fits = fits && d.taken[place] == c.taken[place]+taken
	}
	if !fits || !slices.Equal(fresh, d.Replaced()) {
		r.failf("R1", "%s has the ranks %v of incarnations %v, of which %v are new, and rank %d is number %d of them; it replaces %v of incarnations %v",
			d.name, d.members, d.taken, d.Replaced(), r.id, d.Rank(), c.members, c.taken)
	}
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
			if err.Of(c.Comm) { // otherwise it is the error of the scope of the call's context
				told = err.Dead
			}
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
