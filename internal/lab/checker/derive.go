package main

import (
	"fmt"
	"runtime"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// derive makes a communicator and runs the step's body with it.
func (r *rank) derive(s *step, e *env, parent *inst) (err error) {
	v := event{what: "Dup", comm: parent, begin: r.now(), quiet: true}
	f := parent.Dup
	if s.how == split {
		v.what = "Split"
		f = func() *future.Future[*mpicx.Comm] { return parent.Split(r.id%s.arg, 0) }
	}
	making := f()
	made, err := making.Get(e.ctx)
	v.err = err
	r.note(&v, e, false)
	what := fmt.Sprintf("H5: making number %d%s of %s", s.id, e.path, parent.name)
	if err != nil {
		r.unmade(what, making, err, e, parent)
		return err
	}
	if r.mortal {
		r.outcome(what, "done")
	}
	d := &inst{Comm: made, name: fmt.Sprintf("%s/c%d%s", parent.name, s.id, e.path), parent: parent}
	for _, m := range parent.members {
		if s.how == dup || m%s.arg == r.id%s.arg {
			d.members = append(d.members, m)
		}
	}
	if s.how == split {
		d.name += fmt.Sprintf("(%d)", r.id%s.arg)
	}
	if made.Size() != len(d.members) || made.Rank() != d.rankOf(r.id) {
		r.failf("Split", "%s has %d ranks, this one is %d, expected members %v", d.name, made.Size(), made.Rank(), d.members)
	}
	r.joins(d)
	inner := *e
	inner.comms = map[int]*inst{s.id: d}
	for k, c := range e.comms {
		inner.comms[k] = c
	}
	failed, thrown := true, true
	defer s.catches()
	if s.has(r.id) {
		defer made.Release()
		defer r.releases(d, &failed)
	}
	if r.byHand {
		defer func() {
			if thrown || err != nil {
				r.revoke(e, d) // for ranks that are still in the body
			}
		}()
	}
	err = r.inside(s, &inner, d, &failed)
	thrown = false
	return err
}

// catches ends a panic of a step in the body, if it is for this one.
func (s *step) catches() {
	v := recover()
	if p, ok := v.(panicked); v != nil && !(ok && p.catcher == s.id) {
		panic(v)
	}
}

// inside runs the body, and then closes the communicator that was made for it, unless this rank releases it.
// Failed says whether an error has left the body.
func (r *rank) inside(s *step, e *env, d *inst, failed *bool) error {
	err := r.all(s.body, e)
	*failed = err != nil
	closes := s.close && !s.has(r.id)
	if err == nil && closes && !d.closed.Load() {
		err = r.shut(e, d, false)
	}
	r.useless(d, e)
	if s.absorb && err != nil && r.ofOnly(err, d) {
		err = nil
		for tries := 0; closes && !d.closed.Load() && err == nil && tries < 100; tries++ { // all its ranks repeat this, even those to which Close has returned an error
			if err = r.shut(e, d, false); err != nil && r.ofOnly(err, d) {
				err = nil
			}
		}
	}
	return err
}

// unmade is called if the making of a communicator ended with a verdict. It notes whether the
// verdict came instead of a result that exists (P7), or there is no result: this must be the same
// at all ranks.
func (r *rank) unmade(what string, making *future.Future[*mpicx.Comm], err error, e *env, parent *inst) {
	if !r.mortal || !isVerdict(err) || runtime.GOMAXPROCS(0) > 1 {
		return // on several cores a verdict may come before Test, which then reports it
	}
	v := event{what: "Err", comm: parent, begin: r.now(), err: parent.Err()}
	r.note(&v, e, false)
	if v.err != nil {
		return
	}
	switch done, result := making.Test(); {
	case done && result == nil:
		r.outcome(what, "done")
	case done && result == err:
		r.outcome(what, "not done")
	}
}

// useless checks that even an operation that needs no other rank fails on a corrupted communicator
// (C4).
func (r *rank) useless(d *inst, e *env) {
	if !d.corrupt || d.closed.Load() || !d.whole() {
		return
	}
	v := event{what: "Recv from itself", comm: d, begin: r.now(), quiet: true}
	send := mpicx.Send(d.Comm, []int64{1}, d.Rank(), tagNever)
	v.err = mpicx.Recv(d.Comm, []int64{0}, d.Rank(), tagNever).Wait(e.ctx)
	_, _ = send.Test()
	r.note(&v, e, false)
	if !isCorruption(v.err) {
		r.failf("C4", "an operation on %s at rank %d returns %v, after one has returned a CommCorruptedError", d.name, r.id, v.err)
	}
}

// ofOnly reports whether err concerns only the ranks of d: it is an error of d, or this rank has
// left d's Guard by it.
func (r *rank) ofOnly(err error, d *inst) bool {
	if isVerdict(err) {
		owner := r.ownerOf(err, d)
		if owner != nil {
			return owner == d
		}
		if owner = r.ownerOf(err, d, r.insts...); owner != nil && !owner.derivedFrom(d.name) {
			return false // of a communicator whose Try encloses d's operations
		}
	}
	return d.unwound && !r.above(err, d)
}
