package mpicx_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func numbers(n, from int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = from + i
	}
	return all
}

// Ranks that send before they receive never wait for each other while their messages are short and received, however
// many there are.
func TestSendsBeforeReceives(t *testing.T) {
	exchange := func(ctx context.Context, world *mpicx.Comm) error {
		peer, got := 1-world.Rank(), []int{0}
		for i := range 1<<16 + 1<<15 {
			mpicx.Send(world, []int{i}, peer, 0).MustWait(ctx)
			mpicx.Recv(world, got, peer, 0).MustWait(ctx)
			if got[0] != i {
				return fmt.Errorf("message %d is %d", i, got[0])
			}
		}
		return nil
	}
	if processes != nil {
		mpicxtest.Run(t, 2, exchange)
	} else {
		mpicxtest.RunProcesses(t, 2, exchange)
	}
}

// A ring passes long and short messages round, by two slices, by one, and by two that overlap.
func TestSendrecv(t *testing.T) {
	for _, n := range fitting(1, 2, 3, 4) {
		mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
			me, left, right := world.Rank(), (world.Rank()+n-1)%n, (world.Rank()+1)%n
			for _, length := range []int{0, 1, 1000, 20_000} {
				got := make([]int, length+1)
				s, err := mpicx.Sendrecv(world, numbers(length, me), right, 3, got, left, 3).Get(ctx)
				require.NoError(t, err)
				require.Equal(t, mpicx.Status{Source: left, Tag: 3, Count: length}, s)
				require.Equal(t, append(numbers(length, left), 0), got)

				same := numbers(length, me)
				require.NoError(t, mpicx.Sendrecv(world, same, right, 4, same, left, mpicx.AnyTag).Wait(ctx))
				require.Equal(t, numbers(length, left), same)

				both := append(numbers(length, me), 0)
				require.NoError(t, mpicx.Sendrecv(world, both[:length], right, 5, both[1:], left, 5).Wait(ctx))
				require.Equal(t, numbers(length, left), both[1:])
			}
			// Of other types, in a row whose ends have no neighbour.
			before, after := me-1, me+1
			if me == 0 {
				before = mpicx.ProcNull
			}
			if after == n {
				after = mpicx.ProcNull
			}
			got := []float32{-1}
			s, err := mpicx.Sendrecv(world, []float32{float32(me)}, after, 6, got, before, 6).Get(ctx)
			require.NoError(t, err)
			if me == 0 {
				require.Equal(t, mpicx.Status{Source: mpicx.ProcNull, Tag: mpicx.AnyTag}, s)
				require.Equal(t, []float32{-1}, got)
			} else {
				require.Equal(t, []float32{float32(me - 1)}, got)
			}
			return world.Barrier().Wait(ctx)
		})
	}
}

// P4, F4: an error ends both halves, and the buffers are free.
func TestSendrecvInterrupted(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		long := numbers(20_000, world.Rank())
		f := mpicx.Sendrecv(world, long, (world.Rank()+1)%3, 1, long, (world.Rank()+1)%3, 2) // nobody sends that
		if world.Rank() == 0 {
			_ = world.SignalError(ctx, 7)
		}
		if err := propagated(f.Wait(ctx), 7); err != nil && world.Rank() != 0 {
			return err
		}
		if done, _ := f.Test(); !done || !slices.Equal(long, numbers(20_000, world.Rank())) {
			return fmt.Errorf("done: %t", done)
		}
		return exchange(ctx, world, 0)
	})
}

func TestSendrecvBadArguments(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		one := []int{1}
		for want, f := range map[string]interface{ Wait(context.Context) error }{
			"Sendrecv: rank 2 of world, expected 0 to 1 or ProcNull":            mpicx.Sendrecv(world, one, 2, 0, one, 0, 0),
			"Sendrecv: rank -1 of world, expected 0 to 1 or ProcNull":           mpicx.Sendrecv(world, one, mpicx.AnySource, 0, one, 0, 0),
			"Sendrecv: rank 3 of world, expected 0 to 1, AnySource or ProcNull": mpicx.Sendrecv(world, one, 0, 0, one, 3, 0),
			"Sendrecv: tag -1, expected 0 or more":                              mpicx.Sendrecv(world, one, 0, mpicx.AnyTag, one, 0, 0),
			"Sendrecv: tag -2, expected 0 or more or AnyTag":                    mpicx.Sendrecv(world, one, 0, 0, one, 0, -2),
			"Sendrecv: elements of type string have pointers":                   mpicx.Sendrecv(world, one, 0, 0, []string{""}, 0, 0),
			"Sendrecv: nil communicator (Split returns it for Undefined)":       mpicx.Sendrecv(nil, one, 0, 0, one, 0, 0),
			"with tag 1 is longer than the buffer of 8 bytes":                   mpicx.Sendrecv(world, []int{1, 2}, world.Rank(), 1, one, world.Rank(), 1),
		} {
			require.ErrorContains(t, f.Wait(ctx), want)
		}
		return world.Barrier().Wait(ctx)
	})
}
