package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
)

// H4: after Revoke every operation of every rank ends, those that repair excepted,
// and Revoke may be called by all.
func TestH4Revoke(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 33} {
		mortal(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			me := world.Rank()
			dup, err := world.Dup().Get(ctx)
			if err != nil {
				return err
			}
			if err := dup.Barrier().Wait(ctx); err != nil { // else the revoke may come before the agreement on dup
				return err
			}
			pending := mpicx.Recv(world, []int{0}, (me+1)%n, 1)
			if me == n/2 || me == 0 {
				if err := first(world.Revoke(ctx), world.Revoke(ctx)); err != nil || !world.Revoked() {
					return fmt.Errorf("revoked %t: %w", world.Revoked(), err)
				}
			}
			revoked := func(err error) bool { return errors.Is(err, mpicx.ErrRevoked) }
			if err := first(allowed(pending.Wait(ctx), revoked), allowed(world.Barrier().Wait(ctx), revoked),
				allowed(mpicx.Send(world, []int{1}, me, 0).Wait(ctx), revoked), allowed(world.Err(), revoked),
				allowed(world.Split(0, 0).Wait(ctx), revoked), allowed(world.SignalError(ctx, 1), revoked)); err != nil {
				return err
			}
			flag, err := world.Agree(^(1 << me)).Get(ctx)
			if want := -1 << n; err != nil || flag != want {
				return fmt.Errorf("agreed on %b, %w", flag, err)
			}
			small, err := world.Shrink().Get(ctx)
			if err != nil || small.Size() != n || small.Rank() != me {
				return fmt.Errorf("shrunk: %v %w", small, err)
			}
			// Others do not notice.
			return first(exchange(ctx, small, 1), exchange(ctx, dup, 2), small.Close(ctx), dup.Close(ctx), world.Close(ctx))
		})
	}
}

// Under ErrorsPropagate Revoke corrupts.
func TestRevokePropagates(t *testing.T) {
	propagating(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			if err := world.Revoke(ctx); err != nil {
				return err
			}
		}
		err := world.Barrier().Wait(ctx)
		c, ok := errors.AsType[*mpicx.CommCorruptedError](err)
		if !ok || len(c.Failures) != 1 || c.Failures[0].Rank != 1 || !world.Revoked() {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// Ranks that differ in what they had begun when they heard of a revoke agree all
// the same.
func TestRevokeMeetsDup(t *testing.T) {
	mortal(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		for round := range 100 {
			comm := world.Dup().MustGet(ctx)
			comm.SetErrhandler(mpicx.ErrorsReturn)
			for range (round + world.Rank()) % 3 {
				runtime.Gosched()
			}
			var made *mpicx.Comm
			var err error
			if world.Rank() == round%4 {
				err = comm.Revoke(ctx)
			} else if made, err = comm.Dup().Get(ctx); err == nil { // so all have begun to, but the one
				return errors.New("a communicator of three ranks")
			}
			if err != nil && !errors.Is(err, mpicx.ErrRevoked) || made != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if flag, err := comm.Agree(^(1 << world.Rank())).Get(ctx); flag != -1<<4 || err != nil {
				return fmt.Errorf("round %d: agreed on %d, %w", round, flag, err)
			}
			if err := comm.Shrink().MustGet(ctx).Close(ctx); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return nil
	})
}

// What was done before a revoke keeps its result; what was pending ends with it.
func TestRevokeKeepsResults(t *testing.T) {
	mortal(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		got := []int{0}
		done, pending := mpicx.Recv(world, got, 1-world.Rank(), 1), mpicx.Recv(world, []int{0}, 1-world.Rank(), 2)
		mpicx.Send(world, []int{7}, 1-world.Rank(), 1).MustWait(ctx)
		<-done.Done()
		if err := world.Revoke(ctx); err != nil {
			return err
		}
		if err := done.Wait(ctx); got[0] != 7 && !errors.Is(err, mpicx.ErrRevoked) || got[0] == 7 && err != nil {
			return fmt.Errorf("got %d: %w", got[0], err) // the peer's revoke may have overtaken its message
		}
		if err := pending.Wait(ctx); !errors.Is(err, mpicx.ErrRevoked) {
			return fmt.Errorf("pending: %w", err)
		}
		return world.Agree(1).Wait(ctx)
	})
}

// Who has a communicator that others gave up because of a revoke is told at its
// first use.
func TestRevokeWhileCreating(t *testing.T) {
	for seed := range uint64(200) {
		mortal(t, 5, func(ctx context.Context, world *mpicx.Comm) error {
			rnd := rand.New(rand.NewPCG(seed, uint64(world.Rank())))
			made := world.Dup()
			for range rnd.IntN(20) {
				runtime.Gosched()
			}
			if world.Rank() == int(seed%5) {
				if err := world.Revoke(ctx); err != nil {
					return err
				}
			}
			d, err := made.Get(ctx)
			if err == nil {
				err = d.Barrier().Wait(ctx)
			}
			if err != nil && !errors.Is(err, mpicx.ErrRevoked) {
				return err
			}
			return world.Agree(1).Wait(ctx)
		})
	}
}
