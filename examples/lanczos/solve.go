package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/inject"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// A solver is the state of the program at one rank.
type solver struct {
	*options
	*stopwatch
	*progress
	matrix  *product
	lanczos *lanczos // saved
	saving  *future.Future[struct{}]
	savedOf sheet   // saved, to compare with sheet
	parts   int     // saved: the number of ranks of the checkpoint
	reached int     // iterations that this process has done
	result  *result // at rank 0, once all have succeeded
}

// solve is the program of a rank. It makes as many attempts as necessary.
func (o *options) solve(ctx context.Context, world *mpicx.Comm, stderr io.Writer) (*result, error) {
	for _, k := range o.kills {
		if k.rank >= world.Size() && world.Incarnation() == 0 {
			return nil, fmt.Errorf("-kill %d@%d, expected a rank below %d", k.rank, k.iteration, world.Size())
		}
	}
	s := &solver{options: o, lanczos: new(lanczos), stopwatch: newStopwatch(), progress: newProgress(stderr, world)}
	opts := []recovery.Option{recovery.Replace(), recovery.ElseShrink(), recovery.MaxAttempts(len(o.kills) + 10)}
	if o.every > 0 {
		opts = append(opts, recovery.Checkpoint(o.scheme()))
	}
	err := recovery.Run(ctx, world, s.attempt, opts...)
	s.clear()
	if err != nil {
		return nil, err
	}
	return s.result, nil
}

// attempt begins, or continues from the newest checkpoint.
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
	if s.matrix == nil || s.matrix.comm.Size() != a.Comm.Size() {
		s.matrix = newProduct(s.sheet, a.Comm)
	}
	s.matrix.comm = a.Comm // for the same number of ranks, each keeps its rows
	s.lap(rebuilding)
	if err := s.restore(ctx, a); err != nil {
		return err
	}
	s.lap(reading)
	s.saving = future.Ready(struct{}{})
	l := s.lanczos
	for more := true; more && len(l.alpha) < s.iterations; {
		done := len(l.alpha)
		s.strike(a, done)
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
			if err := s.save(ctx, a, done); err != nil {
				return err
			}
			s.lap(&s.Checkpointing)
		}
		s.show(l, s.iterations)
	}
	return s.conclude(ctx, a)
}

// restore restores the newest checkpoint. If there is none, or more was lost than it survives,
// restore begins at the beginning.
func (s *solver) restore(ctx context.Context, a *recovery.Attempt) error {
	if s.every == 0 {
		return s.lanczos.begin(ctx, s.sheet, s.matrix)
	}
	s.savedOf = s.sheet
	a.Store.Protect("sheet", &s.savedOf, checkpoint.Once)
	a.Store.Protect("parts", &s.parts)
	a.Store.Protect("v", &s.lanczos.v)
	a.Store.Protect("previous", &s.lanczos.previous)
	a.Store.Protect("alpha", &s.lanczos.alpha)
	a.Store.Protect("beta", &s.lanczos.beta)
	version, err := a.Store.Restore(ctx)
	if p, ok := errors.AsType[*checkpoint.PartsError](err); ok {
		version, s.parts, err = p.Version, p.Parts, nil
	}
	if _, lost := errors.AsType[*checkpoint.LostError](err); lost || errors.Is(err, checkpoint.ErrNone) {
		s.parts = a.Comm.Size()
		return s.lanczos.begin(ctx, s.sheet, s.matrix)
	}
	if err == nil && s.parts != a.Comm.Size() {
		err = s.share(ctx, a.Store, version)
		s.parts = a.Comm.Size()
	}
	if err == nil && s.savedOf != s.sheet { // from an earlier job's files
		return a.GiveUp(fmt.Errorf("-dir %s has checkpoints of the sheet %+v, expected %+v", s.dir, s.savedOf, s.sheet))
	}
	s.lanczos.fit(s.matrix.rows)
	return err
}

// share takes this rank's rows from a checkpoint of another number of ranks.
func (s *solver) share(ctx context.Context, store *checkpoint.Store, version int) (err error) {
	if s.savedOf, err = checkpoint.LoadValue[sheet](ctx, store, "sheet", 0, version); err != nil || s.savedOf != s.sheet {
		return err
	}
	n, comm, l := s.sites(), s.matrix.comm, s.lanczos
	first, end := firstRow(n, comm.Size(), comm.Rank()), firstRow(n, comm.Size(), comm.Rank()+1)
	l.fit(s.matrix.rows)
	for part := range s.parts {
		lo, hi := firstRow(n, s.parts, part), firstRow(n, s.parts, part+1)
		from := part
		if hi <= first || end <= lo {
			from = checkpoint.None
		}
		for _, x := range []struct {
			name string
			of   []float64
		}{{"v", l.v}, {"previous", l.previous}} {
			rows, err := checkpoint.Load[float64](ctx, store, x.name, from, version)
			if err != nil {
				return err
			}
			if from == part {
				copy(x.of[max(lo-first, 0):], rows[max(first-lo, 0):])
			}
		}
	}
	if l.alpha, err = checkpoint.Load[float64](ctx, store, "alpha", 0, version); err != nil {
		return err
	}
	l.beta, err = checkpoint.Load[float64](ctx, store, "beta", 0, version)
	return err
}

// scheme says where the store keeps checkpoints.
func (o *options) scheme() checkpoint.Option {
	switch o.store {
	case "rs":
		return checkpoint.RS(4, o.copies)
	case "dir":
		return checkpoint.Dir(o.dir)
	}
	return checkpoint.Partner(o.copies)
}

// save begins to save a version. The previous one has had an interval's time to finish.
func (s *solver) save(ctx context.Context, a *recovery.Attempt, version int) error {
	err := s.saving.Wait(ctx)
	if _, failed := errors.AsType[*checkpoint.SaveError](err); failed {
		return a.GiveUp(err) // for example, a full disk
	}
	s.saving = a.Store.Save(ctx, version)
	return err
}

// strike ends this process if the options say so for this iteration.
func (s *solver) strike(a *recovery.Attempt, iteration int) {
	place, turn := a.Place(a.Comm.Rank()), a.Comm.Incarnation()
	for _, k := range s.kills {
		if k.rank != place {
			continue
		}
		if turn == 0 && k.iteration == iteration {
			inject.Die(a.Comm)
		}
		turn--
	}
}
