//go:build wrong

package main

import (
	"context"
	"testing"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

func TestHangs(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			return mpicx.Recv(world, make([]int, 1), 1, 7).Wait(ctx)
		}
		return world.Barrier().Wait(ctx)
	})
}
