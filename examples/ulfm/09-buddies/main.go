package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/mpicx/go-mpicx/examples/ulfm/lesson"
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

const (
	steps    = 12
	interval = 3 // steps from one save to the next; the last is at the end
	cells    = 4 // per block
)

// points are where ranks may die, in each step. The points in a save or a repair are passed only if
// there is one.
var points = []string{"in the step", "before the save", "in the save", "after the save", "in the repair"}

// blocks maps numbers of blocks to their cells.
type blocks map[int][]float64

func (b blocks) clone() blocks {
	c := make(blocks)
	for i, u := range b {
		c[i] = slices.Clone(u)
	}
	return c
}

// A version is a rank's copies of its own blocks, and of the previous rank's.
type version struct {
	step       int
	own, other blocks
}

type solver struct {
	world  *mpicx.Comm
	comm   *mpicx.Comm // the survivors
	faults lesson.Faults
	step   int
	now    blocks
	owner  []int     // the owner of each block; -1: the block is lost
	saved  []version // the newest version, and the previous one
}

func main() {
	lesson.Main(5, func(ctx context.Context, world *mpicx.Comm, out *lesson.Lines) error {
		return solve(ctx, world, out, lesson.Faults{{Rank: 1, Step: 5, Point: "in the step"}, {Rank: 3, Step: 9, Point: "in the save"}})
	})
}

func solve(ctx context.Context, world *mpicx.Comm, out *lesson.Lines, faults lesson.Faults) error {
	me, n := world.Rank(), world.Size()
	s := &solver{world: world, comm: world, faults: faults, owner: make([]int, n)}
	// All ranks know the initial version without a message.
	s.saved = []version{{0, blocks{me: make([]float64, cells)}, blocks{(me + n - 1) % n: make([]float64, cells)}}}
	for {
		err := s.comm.Guard(ctx, s.attempt)
		if err == nil {
			break
		}
		if _, dead := errors.AsType[*mpicx.CommCorruptedError](err); !dead && !lesson.IsDeath(err) {
			return err
		}
		if s.comm, err = s.comm.Shrink().Get(ctx); err != nil {
			return err
		}
	}
	if b := slices.Index(s.owner, -1); b >= 0 {
		out.Say(world, "block %d is lost with its copy", b)
		return nil
	}
	for b, u := range s.now {
		out.Say(world, "block %d: %.17g", b, u)
	}
	return nil
}

// attempt continues from the last version that all have.
func (s *solver) attempt(ctx context.Context) error {
	if err := s.restore(ctx); err != nil || slices.Contains(s.owner, -1) {
		return err
	}
	for ; ; s.step++ {
		if s.step%interval == 0 {
			if err := s.save(ctx); err != nil {
				return err
			}
		}
		if s.step == steps { // all have agreed on this step in save
			return nil
		}
		if err := s.relax(ctx); err != nil {
			return err
		}
	}
}

// relax computes the next step.
func (s *solver) relax(ctx context.Context) error {
	halo := make(map[int][]float64) // the cells before and behind a block
	var messages []future.Waiter
	exchange := func(out, in []float64, with, outTag, inTag int) {
		messages = append(messages, mpicx.Send(s.comm, out, s.owner[with], outTag), mpicx.Recv(s.comm, in, s.owner[with], inTag))
	}
	for b, u := range s.now {
		h := []float64{0, 1} // the values at the ends
		halo[b] = h
		if b > 0 {
			exchange(u[:1], h[:1], b-1, 2*b, 2*b-1)
		}
		if b+1 < len(s.owner) {
			exchange(u[cells-1:], h[1:], b+1, 2*b+1, 2*b+2)
		}
	}
	s.here("in the step")
	if err := future.WaitAll(ctx, messages...); err != nil {
		return err
	}
	for b, u := range s.now {
		v := slices.Concat(halo[b][:1], u, halo[b][1:])
		for i := range u {
			u[i] = (v[i] + v[i+2]) / 2
		}
	}
	return nil
}

// save makes a version, and drops all but the last two. It ends once all have made it.
func (s *solver) save(ctx context.Context) error {
	me, n := s.comm.Rank(), s.comm.Size()
	s.here("before the save")
	sent := mpicx.SendValue(s.comm, s.now, (me+1)%n, 0)
	s.here("in the save")
	other, err := mpicx.RecvValue[blocks](s.comm, (me+n-1)%n, 0).Get(ctx)
	if err = errors.Join(err, sent.Wait(ctx)); err != nil {
		return err
	}
	s.saved = slices.DeleteFunc(s.saved, func(v version) bool { return v.step < s.step-interval || v.step == s.step })
	s.saved = append(s.saved, version{s.step, s.now.clone(), other})
	s.here("after the save")
	return s.comm.Agree(1).Wait(ctx)
}

// restore goes back to the newest version that all have, and adopts blocks of the dead.
func (s *solver) restore(ctx context.Context) error {
	newest := s.saved[len(s.saved)-1].step
	var err error
	if s.step, err = mpicx.AllreduceValue(s.comm, newest, func(a, b int) int { return min(a, b) }).Get(ctx); err != nil {
		return err
	}
	s.saved = slices.DeleteFunc(s.saved, func(v version) bool { return v.step > s.step })
	last := s.saved[len(s.saved)-1]
	s.now = last.own.clone()
	s.here("in the repair")
	if err := s.find(ctx); err != nil {
		return err
	}
	for b, u := range last.other {
		if s.owner[b] == -1 {
			s.now[b] = slices.Clone(u)
		}
	}
	return s.find(ctx)
}

// find finds the owner of each block.
func (s *solver) find(ctx context.Context) error {
	all, err := mpicx.AllgatherValue(s.comm, slices.Collect(maps.Keys(s.now))).Get(ctx)
	for b := range s.owner {
		s.owner[b] = slices.IndexFunc(all, func(has []int) bool { return slices.Contains(has, b) })
	}
	return err
}

func (s *solver) here(point string) { s.faults.Here(s.world, s.step, point) }
