package mpicx_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// costly are the operations whose cost is tested.
var costly = []string{"Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Allgatherv", "Alltoall", "ReduceScatter", "Scan"}

// evenPart is a part of a call in which each rank gives or gets one element.
func evenPart(c *mpicx.Comm, root int) part {
	return part{c.Size(), c.Rank(), root, 1, slices.Repeat([]int{1}, c.Size())}
}

// What a short operation needs has served an earlier one, at every rank, but for futures: 16 of
// them are two allocations.
func TestShortCollectivesAllocateNothing(t *testing.T) {
	oneProcess(t)
	if buildtags.Race {
		t.Skip("under the race detector pools lose what they have")
	}
	const times, calls = 50, 8
	for n, name := range product([]int{1, 2, 3, 5}, costly) {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			op, root := operations[name], 0
			p := evenPart(c, 0)
			send, recv := make([]int, n), make([]int, n)
			call := func() {
				for range calls {
					p.root, root = root, (root+1)%n
					mpicx.Throw(op.begin(c, p, send[:op.send(p)], recv[:op.recv(p)]).Wait(ctx))
					c.Barrier().MustWait(ctx) // so that none is ahead, whose messages would have to be kept
				}
			}
			if c.Rank() > 0 {
				for range times + 1 { // AllocsPerRun makes one more
					call()
				}
				return nil
			}
			futures := 2 * n * calls
			require.Less(t, testing.AllocsPerRun(times, call), float64(futures/8+calls), "%s of %d ranks", name, n)
			return nil
		})
	}
}

// What serves again has no buffer of the program, however long no other operation comes.
func TestCollectivesKeepNoBuffer(t *testing.T) {
	oneProcess(t)
	for n, name := range product([]int{1, 2, 5}, costly) {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			var pointers []weak.Pointer[int]
			func() {
				p, op := evenPart(c, n-1), operations[name]
				send, recv := op.buffers(p)
				pointers = append(pointers, weak.Make(unsafe.SliceData(send)), weak.Make(unsafe.SliceData(recv)))
				mpicx.Throw(op.begin(c, p, send, recv).Wait(ctx))
			}()
			runtime.GC()
			for i, p := range pointers {
				require.Nil(t, p.Value(), "buffer %d of %s of rank %d of %d", i, name, c.Rank(), n)
			}
			return nil
		})
	}
}
