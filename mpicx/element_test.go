package mpicx_test

import (
	"context"
	"fmt"
	"strings"
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

// A receive of elements of another type than those that were sent is an error, which says both,
// whatever receives and whatever the lengths are; bytes fit all (M1).
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
	type layout struct {
		A float64
		B int32
	}
	type test struct {
		name string
		recv func() future.Waiter
		sent string // the type; "": it fits
		want string // the type that was expected
	}
	const pair = "struct of 16 bytes"
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		check := func(send func() future.Waiter, tests ...test) {
			for _, test := range tests {
				sent := send()
				err := test.recv().Wait(ctx)
				if test.sent == "" {
					require.NoError(t, err, test.name)
				} else {
					require.NoError(t, classIs(err, mpicx.ClassType))
					op, _, _ := strings.Cut(test.name, ",")
					require.EqualError(t, err, fmt.Sprintf("mpicx: %s: message of type %s from rank 0 with tag 0, expected type %s", op, test.sent, test.want))
				}
				if test.name == "Probe" { // which leaves the message
					mpicx.Recv(world, make([]byte, 100), 0, 0).MustWait(ctx)
				}
				require.NoError(t, sent.Wait(ctx))
			}
		}
		numbers := func(n int) func() future.Waiter {
			return func() future.Waiter { return mpicx.Send(world, make([]float64, n), 0, 0) }
		}
		check(numbers(3),
			test{"the same", func() future.Waiter { return mpicx.Recv(world, make([]float64, 3), 0, 0) }, "", ""},
			test{"its own type", func() future.Waiter { return mpicx.Recv(world, make([]degrees, 3), 0, 0) }, "", ""},
			test{"bytes", func() future.Waiter { return mpicx.Recv(world, make([]byte, 24), 0, 0) }, "", ""},
			test{"Recv", func() future.Waiter { return mpicx.Recv(world, make([]int64, 3), 0, 0) }, "float64", "int64"},
			test{"Recv, too long", func() future.Waiter { return mpicx.Recv(world, make([]int32, 1), 0, 0) }, "float64", "int32"},
			test{"RecvSlice", func() future.Waiter { return mpicx.RecvSlice[int32](world, 0, 0) }, "float64", "int32"},
			test{"Probe", func() future.Waiter { return mpicx.Probe[int32](world, 0, 0) }, "float64", "int32"},
			test{"RecvValue", func() future.Waiter { return mpicx.RecvValue[string](world, 0, 0) }, "float64", "value"})
		check(numbers(0), test{"Recv, empty", func() future.Waiter { return mpicx.Recv(world, []int64{}, 0, 0) }, "float64", "int64"})
		check(numbers(100_000), test{"Recv, long", func() future.Waiter { return mpicx.Recv(world, make([]int64, 100_000), 0, 0) }, "float64", "int64"})
		check(func() future.Waiter { return mpicx.Send(world, []int{1}, 0, 0) },
			test{"an int is an int64", func() future.Waiter { return mpicx.Recv(world, []int64{0}, 0, 0) }, "", ""})
		check(func() future.Waiter { return mpicx.Send(world, make([]byte, 24), 0, 0) },
			test{"from bytes", func() future.Waiter { return mpicx.Recv(world, make([]float64, 3), 0, 0) }, "", ""})
		check(func() future.Waiter { return mpicx.SendValue(world, "text", 0, 0) },
			test{"value as bytes", func() future.Waiter { return mpicx.Recv(world, make([]byte, 100), 0, 0) }, "", ""},
			test{"Recv", func() future.Waiter { return mpicx.Recv(world, make([]float64, 9), 0, 0) }, "value", "float64"})
		taken := func() *mpicx.Message { return world.Mprobe(0, 0).MustGet(ctx) }
		check(func() future.Waiter { return mpicx.Send(world, []particle{{1, 2}}, 0, 0) },
			test{"the same layout", func() future.Waiter { return mpicx.Recv(world, []layout{{}}, 0, 0) }, "", ""},
			test{"Recv", func() future.Waiter { return mpicx.Recv(world, []body{{}}, 0, 0) }, pair, pair},
			test{"Recv, arrays", func() future.Waiter { return mpicx.Recv(world, [][2]int64{{}}, 0, 0) }, pair, pair},
			test{"RecvSliceStatus", func() future.Waiter { return mpicx.RecvSliceStatus[int64](world, 0, 0) }, pair, "int64"},
			test{"RecvValueStatus", func() future.Waiter { return mpicx.RecvValueStatus[particle](world, 0, 0) }, pair, "value"},
			test{"RecvInit", func() future.Waiter { return mpicx.RecvInit(world, []body{{}}, 0, 0).Start() }, pair, pair},
			test{"Mrecv", func() future.Waiter { return mpicx.Mrecv(taken(), []float64{0, 0}) }, pair, "float64"},
			test{"MrecvSlice", func() future.Waiter { return mpicx.MrecvSlice[body](taken()) }, pair, pair},
			test{"MrecvValue", func() future.Waiter { return mpicx.MrecvValue[particle](taken()) }, pair, "value"},
			test{"Sendrecv", func() future.Waiter { return mpicx.Sendrecv(world, []body{{}}, mpicx.ProcNull, 0, []body{{}}, 0, 0) }, pair, pair})
		return nil
	})
}
