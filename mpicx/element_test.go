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

// bodies has one for each of these ranks.
func bodies(ranks ...int) (all []body) {
	for _, r := range ranks {
		all = append(all, body{Position: [3]float64{float64(r), 2, 3}, alive: r%2 == 0, id: int32(r), Kind: struct{ Charge int8 }{-1}})
	}
	return all
}

// Structs without pointers are elements of all that moves data between two ranks.
func TestStructElements(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		peer := 1 - world.Rank()
		out, want := bodies(numbers(100, 100*world.Rank())...), bodies(numbers(100, 100*peer)...)
		status := func(tag int) mpicx.Status { return mpicx.Status{Source: peer, Tag: tag, Count: 100} }
		sends := []future.Waiter{mpicx.Send(world, out, peer, 1), mpicx.Ssend(world, out, peer, 2), mpicx.Send(world, out, peer, 3), mpicx.Send(world, out, peer, 5)}
		require.Equal(t, status(1), mpicx.Probe[body](world, peer, 1).MustGet(ctx))
		in := make([]body, 100)
		require.Equal(t, status(1), mpicx.Recv(world, in, peer, 1).MustGet(ctx))
		require.Equal(t, want, in)
		require.Equal(t, want, mpicx.RecvSlice[body](world, peer, 2).MustGet(ctx))
		m := world.Mprobe(peer, 3).MustGet(ctx)
		require.Equal(t, 100*int(unsafe.Sizeof(body{})), m.Bytes)
		require.Equal(t, want, mpicx.MrecvSlice[body](m).MustGet(ctx))
		clear(in)
		mpicx.Sendrecv(world, out, peer, 4, in, peer, 4).MustWait(ctx)
		require.Equal(t, want, in)
		require.Equal(t, mpicx.Received[[]body]{Value: want, Status: status(5)}, mpicx.RecvSliceStatus[body](world, peer, 5).MustGet(ctx))
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
			"Probe: elements of type mpicx_test.named have pointers: field Name string, expected":                                            mpicx.Probe[named](world, 0, 0),
			"Send: elements of type struct {} have no bytes, expected at least one":                                                          mpicx.Send(world, []struct{}{{}}, 0, 0),
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

// A value, and whose it is.
func TestReceivedWithStatus(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() > 0 {
			return mpicx.SendValue(world, []string{"a", "b"}[:world.Rank()], 0, world.Rank()).Wait(ctx)
		}
		for range 2 {
			got := mpicx.RecvValueStatus[[]string](world, mpicx.AnySource, mpicx.AnyTag).MustGet(ctx)
			require.Len(t, got.Value, got.Status.Source)
			require.Equal(t, got.Status.Source, got.Status.Tag)
			require.Positive(t, got.Status.Count)
		}
		nobody := mpicx.RecvValueStatus[int](world, mpicx.ProcNull, 1).MustGet(ctx)
		require.Equal(t, mpicx.Received[int]{Status: mpicx.Status{Source: mpicx.ProcNull, Tag: mpicx.AnyTag}}, nobody)
		return nil
	})
}

// A mover is an operation that moves data into got, where this is wanted then.
type mover[T any] struct {
	begin func(got []T) future.Waiter
	want  []T
}

// movers are the collective operations that move data, of four ranks: those of all, of neighbours in
// a ring, and between the groups of ranks 0 and 1, and of ranks 2 and 3.
func movers[T any](world *mpicx.Comm, ring *mpicx.Cart, ic *mpicx.Intercomm, of func(ranks ...int) []T) map[string]mover[T] {
	me := world.Rank()
	mine, same, all, nothing := of(me), of(me, me, me, me), of(0, 1, 2, 3), of()
	one, ones := []int{1, 1}, []int{1, 1, 1, 1}
	near, others := of((me+3)%4, (me+1)%4), of(2-me/2*2, 3-me/2*2)
	gathered, received, fromRoot := nothing, nothing, mine
	if me == 2 {
		gathered = all
	}
	root := ic.Union().Group().TranslateRanks([]int{0}, world.Group())[0]
	if me == root {
		received = others
	}
	if me/2 != root/2 {
		fromRoot = of(root)
	}
	return map[string]mover[T]{
		"Bcast": {func(got []T) future.Waiter {
			copy(got, same)
			return mpicx.Bcast(world, got, 1)
		}, of(1, 1, 1, 1)},
		"Gather":             {func(got []T) future.Waiter { return mpicx.Gather(world, mine, got, 2) }, gathered},
		"Gatherv":            {func(got []T) future.Waiter { return mpicx.Gatherv(world, mine, got, ones, 2) }, gathered},
		"Scatter":            {func(got []T) future.Waiter { return mpicx.Scatter(world, all, got, 1) }, all[me:][:1]},
		"Scatterv":           {func(got []T) future.Waiter { return mpicx.Scatterv(world, all, ones, got, 1) }, all[me:][:1]},
		"Allgather":          {func(got []T) future.Waiter { return mpicx.Allgather(world, mine, got) }, all},
		"Allgatherv":         {func(got []T) future.Waiter { return mpicx.Allgatherv(world, mine, got, ones) }, all},
		"Alltoall":           {func(got []T) future.Waiter { return mpicx.Alltoall(world, same, got) }, all},
		"Alltoallv":          {func(got []T) future.Waiter { return mpicx.Alltoallv(world, same, ones, got, ones) }, all},
		"NeighborAllgather":  {func(got []T) future.Waiter { return mpicx.NeighborAllgather(ring, mine, got) }, near},
		"NeighborAllgatherv": {func(got []T) future.Waiter { return mpicx.NeighborAllgatherv(ring, mine, got, one) }, near},
		"NeighborAlltoall":   {func(got []T) future.Waiter { return mpicx.NeighborAlltoall(ring, same[:2], got) }, near},
		"NeighborAlltoallv":  {func(got []T) future.Waiter { return mpicx.NeighborAlltoallv(ring, same[:2], one, got, one) }, near},
		"InterAlltoall":      {func(got []T) future.Waiter { return mpicx.InterAlltoall(ic, same[:2], got) }, others},
		"InterGather":        {func(got []T) future.Waiter { return mpicx.InterGather(ic, mine, got, 0) }, received},
		"InterBcast": {func(got []T) future.Waiter {
			copy(got, mine)
			return mpicx.InterBcast(ic, got, 0)
		}, fromRoot},
	}
}

// Collective operations that move data take structs, too, and refuse pointers alike.
func TestStructElementsOfCollectives(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		ring := mpicx.CartCreate(world, []int{4}, []bool{true}).MustGet(ctx)
		local, bridge, remoteLeader := beside(ctx, world, 2)
		ic := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 0).MustGet(ctx)
		for name, m := range inOrder(movers(world, ring, ic, bodies)) {
			got := make([]body, len(m.want))
			require.NoError(t, m.begin(got).Wait(ctx), name)
			require.Equal(t, append([]body{}, m.want...), got, name)
		}
		type named struct{ Name string }
		bad := func(ranks ...int) []named { return make([]named, len(ranks)) }
		for name, m := range inOrder(movers(world, ring, ic, bad)) {
			err := m.begin(bad(0)).Wait(ctx)
			require.ErrorContains(t, err, "have pointers: field Name string, expected a type of fixed size without any", name)
		}
		return world.Barrier().Wait(ctx)
	})
}

// A receive of elements of another type than those that were sent is an error, which says both,
// whatever receives and whatever the lengths are; bytes fit all (M1).
func TestTypesOfMessages(t *testing.T) {
	type test struct {
		name string
		recv func() future.Waiter
		sent string // the type; "": it fits
		want string // the type that was expected
	}
	type pair = [2]float64
	type other = [2]int64
	const pairs = "struct of 16 bytes"
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		check := func(send func() future.Waiter, tests ...test) {
			for _, test := range tests {
				sent := send()
				err := test.recv().Wait(ctx)
				if test.sent == "" {
					require.NoError(t, err, test.name)
				} else {
					op, _, _ := strings.Cut(test.name, ",")
					require.NoError(t, isMPIError(err, op, mpicx.ClassType, fmt.Sprintf("message of type %s from rank 0 with tag 0, expected type %s", test.sent, test.want)))
				}
				if test.name == "Probe" { // which leaves the message
					mpicx.Recv(world, make([]byte, 100), 0, 0).MustWait(ctx)
				}
				mpicx.Throw(sent.Wait(ctx))
			}
		}
		numbers := func(n int) func() future.Waiter {
			return func() future.Waiter { return mpicx.Send(world, make([]float64, n), 0, 0) }
		}
		check(numbers(3),
			test{"the same", func() future.Waiter { return mpicx.Recv(world, make([]float64, 3), 0, 0) }, "", ""},
			test{"bytes", func() future.Waiter { return mpicx.Recv(world, make([]byte, 24), 0, 0) }, "", ""},
			test{"Recv", func() future.Waiter { return mpicx.Recv(world, make([]int64, 3), 0, 0) }, "float64", "int64"},
			test{"Recv, too long", func() future.Waiter { return mpicx.Recv(world, make([]int32, 1), 0, 0) }, "float64", "int32"},
			test{"RecvSlice", func() future.Waiter { return mpicx.RecvSlice[int32](world, 0, 0) }, "float64", "int32"},
			test{"Probe", func() future.Waiter { return mpicx.Probe[int32](world, 0, 0) }, "float64", "int32"},
			test{"RecvValue", func() future.Waiter { return mpicx.RecvValue[string](world, 0, 0) }, "float64", "value"})
		check(numbers(0), test{"Recv, empty", func() future.Waiter { return mpicx.Recv(world, []int64{}, 0, 0) }, "float64", "int64"})
		check(numbers(100_000), test{"Recv, long", func() future.Waiter { return mpicx.Recv(world, make([]int64, 100_000), 0, 0) }, "float64", "int64"})
		check(func() future.Waiter { return mpicx.Send(world, make([]byte, 24), 0, 0) },
			test{"from bytes", func() future.Waiter { return mpicx.Recv(world, make([]float64, 3), 0, 0) }, "", ""})
		check(func() future.Waiter { return mpicx.SendValue(world, "text", 0, 0) },
			test{"value as bytes", func() future.Waiter { return mpicx.Recv(world, make([]byte, 100), 0, 0) }, "", ""},
			test{"Recv", func() future.Waiter { return mpicx.Recv(world, make([]float64, 9), 0, 0) }, "value", "float64"})
		taken := func() *mpicx.Message { return world.Mprobe(0, 0).MustGet(ctx) }
		check(func() future.Waiter { return mpicx.Send(world, []pair{{1, 2}}, 0, 0) },
			test{"Recv", func() future.Waiter { return mpicx.Recv(world, []other{{}}, 0, 0) }, pairs, pairs},
			test{"RecvSliceStatus", func() future.Waiter { return mpicx.RecvSliceStatus[int64](world, 0, 0) }, pairs, "int64"},
			test{"RecvValueStatus", func() future.Waiter { return mpicx.RecvValueStatus[pair](world, 0, 0) }, pairs, "value"},
			test{"RecvInit", func() future.Waiter { return mpicx.RecvInit(world, []other{{}}, 0, 0).Start() }, pairs, pairs},
			test{"Mrecv", func() future.Waiter { return mpicx.Mrecv(taken(), []float64{0, 0}) }, pairs, "float64"},
			test{"MrecvSlice", func() future.Waiter { return mpicx.MrecvSlice[other](taken()) }, pairs, pairs},
			test{"MrecvValue", func() future.Waiter { return mpicx.MrecvValue[pair](taken()) }, pairs, "value"},
			test{"Sendrecv", func() future.Waiter { return mpicx.Sendrecv(world, []other{{}}, mpicx.ProcNull, 0, []other{{}}, 0, 0) }, pairs, pairs})
		return nil
	})
}
