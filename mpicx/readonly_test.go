//go:build unix

package mpicx_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// memory returns n parts of so many pages. A write to a part that is read-only ends the test by
// SIGSEGV, but a copy of memory onto itself does not. The race detector finds that, in memory of
// Go's own.
func memory(t *testing.T, n, pages int, readOnly func(part int) bool) []int64 {
	size := pages * os.Getpagesize()
	if buildtags.Race {
		return make([]int64, n*size/8)
	}
	all, err := syscall.Mmap(-1, 0, n*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(all)) })
	for part := range n {
		if readOnly(part) {
			require.NoError(t, syscall.Mprotect(all[part*size:][:size], syscall.PROT_READ))
		}
	}
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(all))), len(all)/8)
}

// No operation writes to a buffer that the program has passed for reading, not even the same
// values: other operations may be reading it, here those of other ranks. The same is true of the
// part of an in-place buffer that does not change.
func TestNothingThatIsReadIsWritten(t *testing.T) {
	everyAlgorithm(t, func(t *testing.T, operation string) {
		for n := 1; n <= mostRanks(); n++ {
			for _, pages := range []int{1, 32} {
				root := min(1, n-1)
				read := memory(t, n, pages, func(int) bool { return true })
				inPlace := memory(t, n, pages, func(part int) bool { return part == root })
				mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
					return callReadOnly(ctx, c, operation, root, read, inPlace)
				})
			}
		}
	})
}

// callReadOnly calls an operation, in place too if it has that, where no rank may write to read, nor
// to the root's part of inPlace.
func callReadOnly(ctx context.Context, c *mpicx.Comm, operation string, root int, read, inPlace []int64) error {
	each := len(read) / c.Size()
	counts := slices.Repeat([]int{each}, c.Size())
	mine := func(all []int64) []int64 { return all[root*each:][:each] }
	part, all := make([]int64, each), make([]int64, len(read))
	// What the ranks that are not the root pass for the buffers which Bcast sends, a Gather in place
	// sends and receives, and a Scatter in place sends and receives.
	sent, gatherOf, gatherTo, scatterOf, scatterTo := part, part, []int64(nil), []int64(nil), part
	if c.Rank() == root {
		sent, gatherOf, gatherTo, scatterOf, scatterTo = mine(read), mine(inPlace), inPlace, read, mine(read)
	}
	for _, call := range []struct {
		name  string
		begin func() future.Waiter
	}{
		{"Bcast", func() future.Waiter { return mpicx.Bcast(c, sent, root) }},
		{"Gather", func() future.Waiter { return mpicx.Gather(c, mine(read), all, root) }},
		{"Gather, in place", func() future.Waiter { return mpicx.Gather(c, gatherOf, gatherTo, root) }},
		{"Scatter", func() future.Waiter { return mpicx.Scatter(c, read, part, root) }},
		{"Scatter, in place", func() future.Waiter { return mpicx.Scatter(c, scatterOf, scatterTo, root) }},
		{"Allgather", func() future.Waiter { return mpicx.Allgather(c, mine(read), all) }},
		{"Allgatherv", func() future.Waiter { return mpicx.Allgatherv(c, mine(read), all, counts) }},
		{"Alltoall", func() future.Waiter { return mpicx.Alltoall(c, read, all) }},
		{"Reduce", func() future.Waiter { return mpicx.Reduce(c, read, all, mpicx.Sum, root) }},
		{"Allreduce", func() future.Waiter { return mpicx.Allreduce(c, read, all, mpicx.Sum) }},
		{"Scan", func() future.Waiter { return mpicx.Scan(c, read, all, mpicx.Sum) }},
		{"Scan, exclusive", func() future.Waiter { return mpicx.Exscan(c, read, all, mpicx.Sum) }},
		{"ReduceScatter", func() future.Waiter { return mpicx.ReduceScatter(c, read, part, counts, mpicx.Sum) }},
	} {
		if name, _, _ := strings.Cut(call.name, ","); name == operation {
			mpicx.Throw(explain(call.begin().Wait(ctx), "%s", call.name))
		}
	}
	return nil
}
