package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// sent has rank 0 send by one function and rank 1 receive by another.
func sent(send, receive func(ctx context.Context, c *mpicx.Comm) error) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			return send(ctx, world)
		}
		return receive(ctx, world)
	}
}

func sendOf[T any](n int) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, c *mpicx.Comm) error { return mpicx.Send(c, make([]T, n), 1, 5).Wait(ctx) }
}

func recvOf[T any](n int) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, c *mpicx.Comm) error { return mpicx.Recv(c, make([]T, n), 0, 5).Wait(ctx) }
}

func sliceOf[T any](ctx context.Context, c *mpicx.Comm) error {
	return mpicx.RecvSlice[T](c, 0, 5).Wait(ctx)
}
func probeOf[T any](ctx context.Context, c *mpicx.Comm) error {
	return mpicx.Probe[T](c, 0, 5).Wait(ctx)
}

func sendValue(ctx context.Context, c *mpicx.Comm) error {
	return mpicx.SendValue(c, "text", 1, 5).Wait(ctx)
}

func recvValue(ctx context.Context, c *mpicx.Comm) error {
	return mpicx.RecvValue[string](c, 0, 5).Wait(ctx)
}

// A receive of elements of another type than those that were sent is an error, which says
// both, whatever their lengths; bytes fit all (M1).
func TestTypesOfMessages(t *testing.T) {
	type degrees float64
	type particle struct {
		Mass float64
		Kind int32
	}
	type body struct {
		Mass float32
		Kind int64
	}
	for _, test := range []struct {
		name          string
		send, receive func(context.Context, *mpicx.Comm) error
		want          string // "": it is right
	}{
		{"the same", sendOf[float64](3), recvOf[float64](3), ""},
		{"another", sendOf[float64](3), recvOf[int64](3), "mpicx: Recv: message of type float64 from rank 0 with tag 5, expected type int64"},
		{"long", sendOf[float64](100_000), recvOf[int64](100_000), "mpicx: Recv: message of type float64 from rank 0 with tag 5, expected type int64"},
		{"too long as well", sendOf[float64](3), recvOf[int32](1), "mpicx: Recv: message of type float64 from rank 0 with tag 5, expected type int32"},
		{"empty", sendOf[float64](0), recvOf[int64](0), "mpicx: Recv: message of type float64 from rank 0 with tag 5, expected type int64"},
		{"slice", sendOf[uint32](3), sliceOf[int32], "mpicx: RecvSlice: message of type uint32 from rank 0 with tag 5, expected type int32"},
		{"probe", sendOf[uint32](3), probeOf[int32], "mpicx: Probe: message of type uint32 from rank 0 with tag 5, expected type int32"},
		{"value as elements", sendValue, recvOf[float64](100), "mpicx: Recv: message of type value from rank 0 with tag 5, expected type float64"},
		{"elements as value", sendOf[float64](3), recvValue, "mpicx: RecvValue: message of type float64 from rank 0 with tag 5, expected type value"},
		{"structs", sendOf[particle](3), recvOf[body](3), "mpicx: Recv: message of type struct of 16 bytes from rank 0 with tag 5, expected type struct of 16 bytes"},
		{"the same structs", sendOf[particle](3), recvOf[particle](3), ""},
		{"the same layout", sendOf[struct {
			A float64
			B int32
		}](3), recvOf[particle](3), ""},
		{"arrays", sendOf[[2]float64](3), recvOf[[2]int64](3), "mpicx: Recv: message of type struct of 16 bytes from rank 0 with tag 5, expected type struct of 16 bytes"},
		{"a type of one's own", sendOf[degrees](3), recvOf[float64](3), ""},
		{"an int is an int64", sendOf[int](3), recvOf[int64](3), ""},
		{"to bytes", sendOf[float64](3), recvOf[byte](24), ""},
		{"from bytes", sendOf[byte](24), recvOf[float64](3), ""},
		{"value as bytes", sendValue, recvOf[byte](100), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
				err := sent(test.send, func(ctx context.Context, c *mpicx.Comm) error {
					err := test.receive(ctx, c)
					if test.want == "" || err == nil {
						return err
					}
					if e, ok := errors.AsType[*mpicx.MPIError](err); !ok || e.Class != mpicx.ClassType || e.Error() != test.want {
						return fmt.Errorf("got %w", err)
					}
					return nil
				})(ctx, world)
				if test.name == "probe" { // which leaves the message
					_, err = 0, errors.Join(err, sent(func(context.Context, *mpicx.Comm) error { return nil }, recvOf[uint32](3))(ctx, world))
				}
				return errors.Join(err, world.Barrier().Wait(ctx))
			})
		})
	}
}

// The error says in its class in what the calls differ.
func TestClassesOfMismatches(t *testing.T) {
	oneProcess(t)
	for want, calls := range map[mpicx.Class][2]func(context.Context, *mpicx.Comm) error{
		mpicx.ClassOther: {barrier, allreduce[int](1, mpicx.Sum)},
		mpicx.ClassOp:    {allreduce[int](1, mpicx.Sum), allreduce[int](1, mpicx.Max)},
		mpicx.ClassRoot:  {bcast[int](1, 0), bcast[int](1, 1)},
		mpicx.ClassCount: {allreduce[int](1, mpicx.Sum), allreduce[int](2, mpicx.Sum)},
		mpicx.ClassType:  {allreduce[int](1, mpicx.Sum), allreduce[float32](1, mpicx.Sum)},
	} {
		err := mpicx.Run(t.Context(), then(either(calls[0], calls[1]), barrier), mpicx.WithRanks(2))
		e, ok := errors.AsType[*mpicx.MPIError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, want, e.Class, "%v", err)
	}
}

// Where the call of a rank has ended, and it waits for nothing more, Run says it at its end.
func TestMismatchAtTheEndOfRun(t *testing.T) {
	oneProcess(t)
	made := make(chan struct{})
	err := mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			defer close(made)
			return world.Dup().Wait(ctx) // for which the black channel needs nobody
		}
		<-made
		return mpicx.Bcast(world, []int{1}, 0).Wait(ctx)
	}, mpicx.WithRanks(2), hook.Backend[mpicx.Option]("blackchannel"))
	require.EqualError(t, err, "rank 1: mpicx: Dup: Bcast(root 0, 1 × int) at rank 0, Dup at rank 1, both as collective call 1 of world, expected the same at all ranks")
}
