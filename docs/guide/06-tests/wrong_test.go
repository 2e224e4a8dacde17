//go:build wrong

package main

import (
	"context"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Nobody waits for the first Send, whose rank there is not. Nobody receives the second.
func TestLeavesSomethingBehind(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			mpicx.Send(world, []int{1}, 7, 0)
			mpicx.Send(world, []int{1, 2}, 1, 5)
		}
		return world.Barrier().Wait(ctx)
	})
}
