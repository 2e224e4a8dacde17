//go:build unix

package mpicx_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// memory returns n parts of equal length. A write to a part that is read-only ends the test by
// SIGSEGV, but a copy of memory onto itself does not. The race detector finds that, in memory of
// Go's own.
func memory(t *testing.T, n, pages int, readOnly func(part int) bool) []int {
	size := pages * os.Getpagesize()
	if buildtags.Race {
		return make([]int, n*size/8)
	}
	all, err := syscall.Mmap(-1, 0, n*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(all)) })
	for part := range n {
		if readOnly(part) {
			require.NoError(t, syscall.Mprotect(all[part*size:][:size], syscall.PROT_READ))
		}
	}
	return unsafe.Slice((*int)(unsafe.Pointer(unsafe.SliceData(all))), len(all)/8)
}

// No operation writes to a buffer that the program has passed for reading, not even the same
// values: other operations may be reading it, here those of other ranks. The same is true of the
// part of an in-place buffer that does not change.
func TestNothingThatIsReadIsWritten(t *testing.T) {
	everyAlgorithm(t, func(t *testing.T, operation string) {
		for n, pages := range product(numbers(mostRanks(), 1), []int{1, 32}) {
			root := min(1, n-1)
			read := memory(t, n, pages, func(int) bool { return true })
			inPlace := memory(t, n, pages, func(part int) bool { return part == root })
			mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
				return callReadOnly(ctx, c, operation, root, read, inPlace)
			})
		}
	})
}

// callReadOnly calls an operation, in place too if it has that, where no rank may write to read, nor
// to the root's part of inPlace.
func callReadOnly(ctx context.Context, c *mpicx.Comm, operation string, root int, read, inPlace []int) error {
	p := newPart(c, root, len(read)/c.Size())
	for name, op := range inOrder(operations) {
		longest := 0 // of all ranks
		for r := range p.n {
			of := p
			of.me = r
			longest = max(longest, op.send(of))
		}
		if !belongs(name, operation) || longest > len(read) {
			continue
		}
		send, recv := read[:op.send(p)], make([]int, op.recv(p))
		mpicx.Throw(explain(op.begin(c, p, send, recv).Wait(ctx), "%s", name))
		switch {
		case p.me != root:
		case name == "Gather":
			send, recv = inPlace[p.place():][:p.length], inPlace
		case name == "Scatter":
			recv = read[p.place():][:p.length]
		}
		mpicx.Throw(explain(op.begin(c, p, send, recv).Wait(ctx), "%s, in place", name))
	}
	return nil
}
