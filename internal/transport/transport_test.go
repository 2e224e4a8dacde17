package transport

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorTexts(t *testing.T) {
	truncate := &TruncateError{Status: Status{Source: 3, Tag: 7, Bytes: 100}, Room: 64}
	require.EqualError(t, truncate,
		"message of 100 bytes from rank 3 with tag 7 is longer than the buffer of 64 bytes")
	require.EqualError(t, ErrCancelled, "cancelled")
	require.EqualError(t, &DeadError{3}, "the process of rank 3 has died")
	require.EqualError(t, &DeadError{AnySource}, "the processes of all other ranks of the communicator have died")
	require.EqualError(t, &LeftError{3}, "rank 3 has returned")
	require.EqualError(t, &LeftError{AnySource}, "every other rank of the communicator has returned")
	require.ErrorIs(t, fmt.Errorf("receive: %w", ErrCancelled), ErrCancelled)

	found, ok := errors.AsType[*TruncateError](fmt.Errorf("receive: %w", truncate))
	require.True(t, ok)
	require.Same(t, truncate, found)
}

func TestKindString(t *testing.T) {
	for kind, want := range map[Kind]string{Idle: "idle", Sending: "send", Receiving: "receive", Probing: "probe", Mprobing: "matched probe"} {
		require.Equal(t, want, kind.String())
	}
}
