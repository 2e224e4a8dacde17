package main

import (
	"context"
	"fmt"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// neighborhoodRows compare an exchange between neighbours of a periodic grid with the same messages
// by hand.
func neighborhoodRows() (all []row) {
	for _, side := range []int{3, 8} {
		for _, bytes := range []int{8, 4 << 10, 64 << 10} {
			all = append(all, row{
				what:    fmt.Sprintf("NeighborAlltoall of %s, %d ranks", size(bytes), side*side),
				against: "the same by Send and Recv", reach: 1.1,
				measure: func(c config) result {
					ours, theirs, allocations := sideBySide(side*side, c.times(21), func(ctx context.Context, world *mpicx.Comm) [2]call {
						return neighbors(ctx, world, side, bytes/8)
					})
					return result{ours, theirs, fmt.Sprintf("%.1f allocations of a rank's call", allocations)}
				},
			})
		}
	}
	return all
}

// neighbors are calls that exchange e elements with each of four neighbours.
func neighbors(ctx context.Context, world *mpicx.Comm, side, e int) [2]call {
	grid, err := mpicx.CartCreate(world, []int{side, side}, []bool{true, true}).Get(ctx)
	must(err)
	send, recv := ones(4*e), ones(4*e)
	var peers [4]int // in the order of parts
	for d := range 2 {
		peers[2*d], peers[2*d+1] = grid.Shift(d, 1)
	}
	var fs [8]future.Waiter
	return [2]call{
		func(ctx context.Context, _ int) { mpicx.NeighborAlltoall(grid, send, recv).MustWait(ctx) },
		func(ctx context.Context, _ int) {
			for i, peer := range peers {
				fs[i] = mpicx.Recv(grid.Comm, recv[i*e:][:e], peer, i^1) // the tag of the part sent to this rank
				fs[4+i] = mpicx.Send(grid.Comm, send[i*e:][:e], peer, i)
			}
			mpicx.Throw(future.WaitAll(ctx, fs[:]...))
		},
	}
}
