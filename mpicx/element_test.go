package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// body has padding behind alive.
type body struct {
	Position, Velocity [3]float64
	alive              bool
	id                 int32
	Kind               struct{ Charge int8 }
}

// Structs without pointers are elements of all that moves data between two ranks.
func TestStructElements(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		peer := 1 - world.Rank()
		of := func(rank int) []body {
			all := make([]body, 100)
			for i := range all {
				all[i] = body{Position: [3]float64{float64(i), 2, 3}, alive: i%2 == 0, id: int32(rank), Kind: struct{ Charge int8 }{-1}}
			}
			return all
		}
		out, in := of(world.Rank()), make([]body, 100)
		sends := []future.Waiter{mpicx.Send(world, out, peer, 1), mpicx.Ssend(world, out, peer, 2), mpicx.Send(world, out, peer, 3), mpicx.Send(world, out, peer, 5)}
		s, err := mpicx.Probe[body](world, peer, 1).Get(ctx)
		require.NoError(t, err)
		require.Equal(t, 100, s.Count)
		s, err = mpicx.Recv(world, in, peer, 1).Get(ctx)
		require.NoError(t, err)
		require.Equal(t, mpicx.Status{Source: peer, Tag: 1, Count: 100}, s)
		require.Equal(t, of(peer), in)
		slice, err := mpicx.RecvSlice[body](world, peer, 2).Get(ctx)
		require.NoError(t, err)
		require.Equal(t, of(peer), slice)
		m, err := world.Mprobe(peer, 3).Get(ctx)
		require.NoError(t, err)
		require.Equal(t, 100*int(unsafe.Sizeof(body{})), m.Bytes)
		slice, err = mpicx.MrecvSlice[body](m).Get(ctx)
		require.NoError(t, err)
		require.Equal(t, of(peer), slice)
		clear(in)
		require.NoError(t, mpicx.Sendrecv(world, out, peer, 4, in, peer, 4).Wait(ctx))
		require.Equal(t, of(peer), in)
		got, err := mpicx.RecvSliceStatus[body](world, peer, 5).Get(ctx)
		require.NoError(t, err)
		require.Equal(t, mpicx.Received[[]body]{Value: of(peer), Status: mpicx.Status{Source: peer, Tag: 5, Count: 100}}, got)
		return future.WaitAll(ctx, sends...)
	})
}

// One with pointers is an error before anything is sent, which names the field.
func TestElementsWithPointers(t *testing.T) {
	type named struct {
		ID   int
		Name string
	}
	type nested struct {
		Head struct{ Parts [2]named }
	}
	type list struct {
		Values [4]float64
		Names  [3]string
	}
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		for want, f := range map[string]future.Waiter{
			"Send: elements of type mpicx_test.named have pointers: field Name string, expected a type of fixed size without any":            mpicx.Send(world, []named{{}}, 0, 0),
			"Ssend: elements of type mpicx_test.nested have pointers: field Head.Parts.Name string, expected a type":                         mpicx.Ssend(world, []nested{{}}, 0, 0),
			"Recv: elements of type mpicx_test.list have pointers: field Names [3]string, expected a type":                                   mpicx.Recv(world, []list{{}}, 0, 0),
			"RecvSlice: elements of type []int have pointers, expected a type of fixed size without any":                                     mpicx.RecvSlice[[]int](world, 0, 0),
			"Probe: elements of type interface {} have pointers, expected":                                                                   mpicx.Probe[any](world, 0, 0),
			"Send: elements of type [2]map[int]int have pointers, expected":                                                                  mpicx.Send(world, [][2]map[int]int{{}}, 0, 0),
			"Send: elements of type struct {} have no bytes, expected at least one":                                                          mpicx.Send(world, []struct{}{{}}, 0, 0),
			"Recv: elements of type [0]string have no bytes, expected at least one":                                                          mpicx.Recv(world, [][0]string{{}}, 0, 0),
			"RecvSliceStatus: elements of type mpicx_test.named have pointers: field Name string, expected a type of fixed size without any": mpicx.RecvSliceStatus[named](world, 0, 0),
		} {
			require.ErrorContains(t, f.Wait(ctx), want)
		}
		require.Empty(t, world.Blocked())
		done, err := mpicx.Probe[byte](world, mpicx.AnySource, mpicx.AnyTag).Test()
		require.False(t, done, "something was sent")
		return err
	})
}

// Elements without pointers though with fields that could have some.
func TestElementsWithout(t *testing.T) {
	type empty struct {
		None [0]string
		_    int32
		Size uintptr
	}
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		got := []empty{{}}
		return future.WaitAll(ctx, mpicx.Send(world, []empty{{Size: 7}}, 0, 0), mpicx.Recv(world, got, 0, 0))
	})
}

// A value, and whose it is.
func TestReceivedWithStatus(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() > 0 {
			return mpicx.SendValue(world, []string{"a", "b"}[:world.Rank()], 0, world.Rank()).Wait(ctx)
		}
		for range 2 {
			got, err := mpicx.RecvValueStatus[[]string](world, mpicx.AnySource, mpicx.AnyTag).Get(ctx)
			require.NoError(t, err)
			require.Len(t, got.Value, got.Status.Source)
			require.Equal(t, got.Status.Source, got.Status.Tag)
			require.Positive(t, got.Status.Count)
		}
		nobody, err := mpicx.RecvValueStatus[int](world, mpicx.ProcNull, 1).Get(ctx)
		require.NoError(t, err)
		require.Equal(t, mpicx.Received[int]{Status: mpicx.Status{Source: mpicx.ProcNull, Tag: mpicx.AnyTag}}, nobody)
		return nil
	})
}

// What was sent as one type is not received as another, by whatever receives.
func TestElementsOfAnotherType(t *testing.T) {
	type point struct{ X, Y float64 }
	type pair struct {
		A float64
		B int64
	}
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		send := func() { require.NoError(t, mpicx.Send(world, []point{{1, 2}}, 0, 0).Wait(ctx)) }
		mprobe := func() *mpicx.Message { return world.Mprobe(0, 0).MustGet(ctx) }
		for name, recv := range map[string]func() future.Waiter{
			"Recv":            func() future.Waiter { return mpicx.Recv(world, []pair{{}}, 0, 0) },
			"RecvSliceStatus": func() future.Waiter { return mpicx.RecvSliceStatus[int64](world, 0, 0) },
			"RecvValueStatus": func() future.Waiter { return mpicx.RecvValueStatus[point](world, 0, 0) },
			"RecvInit":        func() future.Waiter { return mpicx.RecvInit(world, []pair{{}}, 0, 0).Start() },
			"Mrecv":           func() future.Waiter { return mpicx.Mrecv(mprobe(), []float64{0, 0}) },
			"MrecvSlice":      func() future.Waiter { return mpicx.MrecvSlice[pair](mprobe()) },
			"MrecvValue":      func() future.Waiter { return mpicx.MrecvValue[point](mprobe()) },
			"Sendrecv":        func() future.Waiter { return mpicx.Sendrecv(world, []point{{}}, mpicx.ProcNull, 0, []pair{{}}, 0, 0) },
		} {
			send()
			require.ErrorContains(t, recv().Wait(ctx), name+": message of type struct of 16 bytes from rank 0 with tag 0, expected type ")
		}
		send()
		packed := make([]byte, 16) // as MPI_PACKED
		return mpicx.Recv(world, packed, 0, 0).Wait(ctx)
	})
}

// Collective operations that move data take structs, too, and refuse pointers alike.
func TestStructElementsOfCollectives(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		mine := []body{{id: int32(world.Rank()), Kind: struct{ Charge int8 }{2}}}
		want := []body{{id: 0, Kind: mine[0].Kind}, {id: 1, Kind: mine[0].Kind}, {id: 2, Kind: mine[0].Kind}}
		all := make([]body, 3)
		check := func(f future.Waiter, got, want []body) {
			require.NoError(t, f.Wait(ctx))
			require.Equal(t, want, got)
		}
		one := []int{1, 1, 1}
		check(mpicx.Allgather(world, mine, all), all, want)
		clear(all)
		check(mpicx.Allgatherv(world, mine, all, one), all, want)
		got := make([]body, 1)
		check(mpicx.Scatter(world, all, got, 1), got, mine)
		clear(got)
		check(mpicx.Scatterv(world, all, one, got, 1), got, mine)
		var gathered []body
		if world.Rank() == 2 {
			gathered = make([]body, 3)
			check(mpicx.Gather(world, mine, gathered, 2), gathered, want)
			clear(gathered)
			check(mpicx.Gatherv(world, mine, gathered, one, 2), gathered, want)
		} else {
			require.NoError(t, mpicx.Gather(world, mine, gathered, 2).Wait(ctx))
			require.NoError(t, mpicx.Gatherv(world, mine, gathered, nil, 2).Wait(ctx))
		}
		same, other := []body{mine[0], mine[0], mine[0]}, make([]body, 3)
		check(mpicx.Alltoall(world, same, other), other, want)
		clear(other)
		check(mpicx.Alltoallv(world, same, one, other, one), other, want)
		check(mpicx.Bcast(world, same, 1), same, []body{want[1], want[1], want[1]})

		bad := []struct {
			ID   int
			Tags []string
		}{{}}
		for i, f := range []future.Waiter{
			mpicx.Bcast(world, bad, 0), mpicx.Gather(world, bad, bad, 0), mpicx.Gatherv(world, bad, bad, nil, 0), mpicx.Scatter(world, bad, bad, 0),
			mpicx.Scatterv(world, bad, nil, bad, 0), mpicx.Allgather(world, bad, bad), mpicx.Allgatherv(world, bad, bad, nil), mpicx.Alltoall(world, bad, bad),
			mpicx.Alltoallv(world, bad, nil, bad, nil),
		} {
			require.ErrorContains(t, f.Wait(ctx), "have pointers: field Tags []string, expected a type of fixed size without any", "operation %d", i)
		}
		return world.Barrier().Wait(ctx)
	})
}

// The operations on neighbours and between groups move structs, too, and refuse pointers alike.
func TestStructElementsOfNeighborsAndGroups(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		of := func(ranks ...int) (all []body) {
			for _, r := range ranks {
				all = append(all, body{id: int32(r), Kind: struct{ Charge int8 }{2}})
			}
			return all
		}
		ring := mpicx.CartCreate(world, []int{4}, []bool{true}).MustGet(ctx)
		me := ring.Rank()
		before, after := (me+3)%4, (me+1)%4
		one, got := []int{1, 1}, make([]body, 2)
		for i, start := range []func() future.Waiter{
			func() future.Waiter { return mpicx.NeighborAllgather(ring, of(me), got) },
			func() future.Waiter { return mpicx.NeighborAllgatherv(ring, of(me), got, one) },
			func() future.Waiter { return mpicx.NeighborAlltoall(ring, of(me, me), got) },
			func() future.Waiter { return mpicx.NeighborAlltoallv(ring, of(me, me), one, got, one) },
		} {
			clear(got)
			require.NoError(t, start().Wait(ctx))
			require.Equal(t, of(before, after), got, "operation %d", i)
		}

		local, bridge, remoteLeader := beside(ctx, world, 2)
		ic := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 0).MustGet(ctx)
		others := of(remoteLeader, remoteLeader+1)
		mpicx.InterAlltoall(ic, of(world.Rank(), world.Rank()), got).MustWait(ctx)
		require.Equal(t, others, got)
		clear(got)
		root := 0 // of Union, whose first ranks are those of the group that began first
		if mpicx.InterGather(ic, of(world.Rank()), got, root).MustWait(ctx); ic.Union().Rank() == root {
			require.Equal(t, others, got)
		}
		given := of(world.Rank())
		mpicx.InterBcast(ic, given, root).MustWait(ctx)
		roots := mpicx.BcastValue(ic.Union(), world.Rank(), root).MustGet(ctx)
		if local.Group().Compare(ic.Union().Group().Incl(0, 1)) == mpicx.Unequal {
			require.Equal(t, of(roots), given)
		}

		bad := []struct{ Name string }{{}}
		for i, f := range []future.Waiter{
			mpicx.NeighborAllgather(ring, bad, bad), mpicx.NeighborAllgatherv(ring, bad, bad, nil), mpicx.NeighborAlltoall(ring, bad, bad),
			mpicx.NeighborAlltoallv(ring, bad, nil, bad, nil), mpicx.InterBcast(ic, bad, 0), mpicx.InterGather(ic, bad, bad, 0), mpicx.InterAlltoall(ic, bad, bad),
		} {
			require.ErrorContains(t, f.Wait(ctx), "have pointers: field Name string, expected a type of fixed size without any", "operation %d", i)
		}
		return world.Barrier().Wait(ctx)
	})
}

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
