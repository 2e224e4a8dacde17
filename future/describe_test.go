package future_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
)

// describing is a keeper that says in every error which futures were waited for.
type describing struct {
	contextKeeper
	troubled bool
	names    map[future.ID]string
}

func (k *describing) Troubled() bool { return k.troubled }

func (k *describing) Describe(_ context.Context, err error, waited ...future.ID) error {
	for _, id := range waited {
		err = fmt.Errorf("%s: %w", k.names[id], err)
	}
	return err
}

// A keeper that can describes what ends a Wait before its operation, or instead of its
// result; the result itself it does not see.
func TestKeeperDescribesErrors(t *testing.T) {
	k := &describing{names: make(map[future.ID]string)}
	a, pa := future.New[int]()
	b, pb := future.New[string]()
	pa.Keep(k)
	pb.Keep(k)
	k.names[a.ID()], k.names[b.ID()] = "a", "b"

	err := a.Wait(ended())
	require.EqualError(t, err, "a: "+errLate.Error())
	require.ErrorIs(t, err, errLate)
	require.EqualError(t, future.WaitAll(ended(), b, a), "b: "+errLate.Error())
	i, err := future.WaitAny(ended(), a, b, new(future.Future[bool]))
	require.Equal(t, -1, i)
	require.EqualError(t, err, ": b: a: "+errLate.Error()) // the last has no name

	pa.Disturb(fmt.Errorf("goes on"))
	require.EqualError(t, a.Wait(ended()), "goes on")
	k.troubled = true
	require.EqualError(t, a.Wait(ended()), "a: "+errLate.Error())

	pa.Complete(0, fmt.Errorf("failed"))
	pb.Complete("", nil)
	require.EqualError(t, a.Wait(ended()), "a: "+errLate.Error())
	k.troubled = false
	require.EqualError(t, a.Wait(bg), "failed")
	require.NoError(t, b.Wait(bg))
}

func TestNilContextPanics(t *testing.T) {
	var none context.Context
	f := future.Ready(1)
	require.PanicsWithValue(t, "future: Wait: nil context", func() { _ = f.Wait(none) })
	require.PanicsWithValue(t, "future: Wait: nil context", func() { _, _ = f.Get(none) })
	require.PanicsWithValue(t, "future: Wait: nil context", func() { f.MustWait(none) })
	require.PanicsWithValue(t, "future: Wait: nil context", func() { f.MustGet(none) })
	require.PanicsWithValue(t, "future: WaitAll: nil context", func() { _ = future.WaitAll(none) })
	require.PanicsWithValue(t, "future: WaitAny: nil context", func() { _, _ = future.WaitAny(none) })
}
