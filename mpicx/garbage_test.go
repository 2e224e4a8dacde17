//go:build linux

package mpicx_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A process that writes garbage all over the memory that a machine's processes share gives
// each of them an *MPIError in the operations that are under way or begin later.
func TestGarbageInSharedMemory(t *testing.T) {
	if processes == nil || mpicx.Backend == "ulfm" {
		t.Skip("needs processes that share memory, and need not die of it")
	}
	ctx := t.Context()
	world := processes.World()
	pending := mpicx.Recv(world, []int{0}, mpicx.AnySource, 1)
	if err := world.Barrier().Wait(ctx); err == nil { // else others have left it, and written
		scribble(t)
	}
	var failed *mpicx.MPIError
	require.ErrorAs(t, pending.Wait(ctx), &failed)
	require.Contains(t, failed.Text, "garbage from process")
	broken = errors.Unwrap(failed)
	for _, f := range []future.Waiter{world.Barrier(), mpicx.Send(world, []int{1}, 0, 1)} {
		err := f.Wait(ctx)
		require.NoError(t, isA[*mpicx.MPIError](err))
		require.ErrorIs(t, err, broken)
	}
	err := world.SignalError(ctx, 1)
	require.NoError(t, isA[*mpicx.CommCorruptedError](err))
	require.ErrorIs(t, err, broken)
}

// scribble fills the memory that this process shares with its neighbours.
func scribble(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, " rw-s ") && strings.Contains(line, "/mpicx-") {
			var from, to int64
			_, err := fmt.Sscanf(line, "%x-%x", &from, &to)
			require.NoError(t, err)
			_, err = memory.WriteAt(bytes.Repeat([]byte{0xAA}, int(to-from)), from)
			require.NoError(t, err)
			return
		}
	}
	t.Fatal("no shared memory")
}
