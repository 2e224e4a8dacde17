package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// A solver is one rank of the program: what its process has.
type solver struct {
	*options
	*stopwatch
	*progress
	matrix  *product
	saved   *checkpoint.Store // nil: nothing is saved
	savedOf sheet             // what is saved, once
	lanczos *lanczos          // what is saved
	reached int               // iterations that this process has done
	result  *result           // at rank 0, once all have succeeded
}

// solve is what a rank does: it makes as many attempts as it takes.
func (o *options) solve(ctx context.Context, world *mpicx.Comm, stderr io.Writer) (*result, error) {
	for _, k := range o.kills {
		if k.rank >= world.Size() {
			return nil, fmt.Errorf("-kill %d@%d, expected a rank below %d", k.rank, k.iteration, world.Size())
		}
	}
	s := &solver{options: o, stopwatch: newStopwatch(), progress: newProgress(stderr, world)}
	err := recovery.Run(ctx, world, s.attempt, recovery.Replace(), recovery.MaxAttempts(len(o.kills)+10))
	s.clear()
	if err != nil {
		return nil, err
	}
	return s.result, nil
}

// attempt begins, or goes on from the newest checkpoint.
func (s *solver) attempt(ctx context.Context, a *recovery.Attempt) error {
	err := s.goOn(ctx, a)
	if err != nil {
		s.lap(&s.Detecting)
	}
	return err
}

func (s *solver) goOn(ctx context.Context, a *recovery.Attempt) error {
	rebuilding, reading := &s.Rebuilding, &s.Reading
	if a.N == 0 {
		rebuilding, reading = &s.Starting, &s.Starting
	}
	if s.matrix == nil {
		s.matrix = newProduct(s.sheet, a.Comm)
		s.lanczos = newLanczos(s.matrix)
	}
	s.matrix.comm = a.Comm // all ranks have the rows that they had
	s.lap(rebuilding)
	if err := s.restore(ctx, a); err != nil {
		return err
	}
	s.lap(reading)
	l := s.lanczos
	for more := true; more && len(l.alpha) < s.iterations; {
		done := len(l.alpha)
		s.strike(a.Comm, done)
		var err error
		if more, err = l.step(ctx, s.matrix); err != nil {
			return err
		}
		if done++; done > s.reached {
			s.reached = done
			s.lap(&s.Computing)
		} else {
			s.lap(&s.Redoing)
		}
		if s.every > 0 && done%s.every == 0 && more {
			_ = s.saved.Save(ctx, done) // the next one, or Restore, waits for it
			s.lap(&s.Checkpointing)
		}
		s.show(l, s.iterations)
	}
	return s.conclude(ctx, a)
}

// restore has the newest checkpoint or, if there is none, or more was lost than it survives, the
// beginning.
func (s *solver) restore(ctx context.Context, a *recovery.Attempt) error {
	if s.every == 0 {
		return s.lanczos.begin(ctx, s.sheet, s.matrix)
	}
	if err := s.open(ctx, a.Comm); err != nil {
		return err
	}
	_, err := s.saved.Restore(ctx)
	_, lost := errors.AsType[*checkpoint.LostError](err)
	_, others := errors.AsType[*checkpoint.PartsError](err)
	switch {
	case lost || errors.Is(err, checkpoint.ErrNone):
		return s.lanczos.begin(ctx, s.sheet, s.matrix)
	case others || err == nil && s.savedOf != s.sheet: // in files of an earlier job
		return a.GiveUp(fmt.Errorf("-dir %s has checkpoints of other ranks, or of the sheet %+v, expected %+v", s.dir, s.savedOf, s.sheet))
	}
	return err
}

// open opens the store on a communicator. Who has lost its memory, because it is new, gets a new
// one; the others bring theirs.
func (s *solver) open(ctx context.Context, comm *mpicx.Comm) error {
	if s.saved != nil {
		store, err := s.saved.Rejoin(ctx, comm)
		if err == nil {
			s.saved = store
		}
		return err
	}
	store, err := checkpoint.Open(ctx, comm, s.scheme())
	if err != nil {
		return err
	}
	s.saved, s.savedOf = store, s.sheet
	store.Protect("sheet", &s.savedOf, checkpoint.Once)
	store.Protect("v", &s.lanczos.v)
	store.Protect("previous", &s.lanczos.previous)
	store.Protect("alpha", &s.lanczos.alpha)
	store.Protect("beta", &s.lanczos.beta)
	return nil
}

// scheme is where the store keeps what is saved.
func (o *options) scheme() checkpoint.Option {
	switch o.store {
	case "rs":
		return checkpoint.RS(4, o.copies)
	case "dir":
		return checkpoint.Dir(o.dir)
	}
	return checkpoint.Partner(o.copies)
}

// strike ends this process if that is what it was told to do at this iteration.
func (s *solver) strike(comm *mpicx.Comm, iteration int) {
	turn := comm.Incarnation()
	for _, k := range s.kills {
		if k.rank != comm.Rank() {
			continue
		}
		if turn == 0 && k.iteration == iteration {
			inject.Die(comm)
		}
		turn--
	}
}
