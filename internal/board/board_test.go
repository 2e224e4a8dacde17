package board

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/signature"
)

const barrier, dup = signature.Word(signature.Barrier), signature.Word(signature.Dup)

// The board keeps nothing of calls that all ranks have made, nor of those behind a mismatch.
func TestForgets(t *testing.T) {
	var b Board
	b.Open(3, 0)
	made := make([]int, 3)
	come := func(rank, n int, w signature.Word) {
		for range n {
			made[rank]++
			b.Come(rank, 0, made[rank], w)
		}
	}
	come(0, 100, barrier)
	come(1, 300, barrier)
	come(2, 500, barrier)
	come(0, 400, barrier)
	come(1, 200, barrier)
	require.Empty(t, b.places)
	require.Len(t, b.idle, mostAhead)
	come(1, 1, barrier)
	come(0, 1000, dup) // rank 1 is halted, and waits for none of these
	require.Len(t, b.places, 1)
}
