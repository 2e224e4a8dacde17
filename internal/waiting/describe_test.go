package waiting_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// describing is a keeper that says in every error which futures were waited for.
type describing struct {
	contextKeeper
	hasVerdict bool
	names      map[*waiting.Cell]string
}

func (k *describing) MayHaveVerdict() bool { return k.hasVerdict }

func (k *describing) Describe(_ context.Context, err error, waited ...*waiting.Cell) error {
	for _, id := range waited {
		err = fmt.Errorf("%s: %w", k.names[id], err)
	}
	return err
}

// A keeper that can describes what ends a Wait before its operation, or instead of its
// result; the result itself it does not see.
func TestKeeperDescribesErrors(t *testing.T) {
	k := &describing{names: make(map[*waiting.Cell]string)}
	a, pa := future.New[int]()
	b, pb := future.New[string]()
	waiting.Of(pa.Future()).Keep(k)
	waiting.Of(pb.Future()).Keep(k)
	k.names[waiting.Of(a)], k.names[waiting.Of(b)] = "a", "b"

	err := a.Wait(ended())
	require.EqualError(t, err, "a: "+errLate.Error())
	require.ErrorIs(t, err, errLate)
	require.EqualError(t, future.WaitAll(ended(), b, a), "b: "+errLate.Error())
	i, err := future.WaitAny(ended(), a, b, new(future.Future[bool]))
	require.Equal(t, -1, i)
	require.EqualError(t, err, ": b: a: "+errLate.Error()) // the last has no name

	waiting.Of(pa.Future()).Disturb(fmt.Errorf("goes on"))
	require.EqualError(t, a.Wait(ended()), "goes on")
	k.hasVerdict = true
	require.EqualError(t, a.Wait(ended()), "a: "+errLate.Error())

	pa.Complete(0, fmt.Errorf("failed"))
	pb.Complete("", nil)
	require.EqualError(t, a.Wait(ended()), "a: "+errLate.Error())
	k.hasVerdict = false
	require.EqualError(t, a.Wait(bg), "failed")
	require.NoError(t, b.Wait(bg))
}
