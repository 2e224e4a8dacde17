//go:build wrong

package main

import (
	"context"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func TestNobodyWaits(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			mpicx.Send(world, []int{1}, 2, 0) // there is no rank 2
		}
		return world.Barrier().Wait(ctx)
	})
}

func TestNobodyReceives(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			mpicx.Send(world, []int{1, 2}, 1, 5)
		}
		return world.Barrier().Wait(ctx)
	})
}
