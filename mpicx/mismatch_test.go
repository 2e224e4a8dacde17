package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"io"
	"maps"
	"slices"

	"github.com/stretchr/testify/assert"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/internal/signature"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A wrong program makes a collective call at rank 0 and another one at the others, which
// its texts are.
type wrong struct {
	zero, others string
	number       int // of the call; 0: 1
	program      func(ctx context.Context, world *mpicx.Comm) error
}

// either calls one function at rank 0 and another at the others.
func either(zero, others func(ctx context.Context, world *mpicx.Comm) error) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			return zero(ctx, world)
		}
		return others(ctx, world)
	}
}

func bcast[T mpicx.Scalar](n, root int) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, world *mpicx.Comm) error {
		return mpicx.Bcast(world, make([]T, n), root).Wait(ctx)
	}
}

func allreduce[T mpicx.Scalar](n int, op mpicx.Op) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, world *mpicx.Comm) error {
		return mpicx.Allreduce(world, make([]T, n), make([]T, n), op).Wait(ctx)
	}
}

func reduce(n int, op mpicx.Op, root int) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, world *mpicx.Comm) error {
		return mpicx.Reduce(world, make([]float64, n), make([]float64, n), op, root).Wait(ctx)
	}
}

func gatherOf(n int) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, world *mpicx.Comm) error {
		return mpicx.Gather(world, make([]int32, n), make([]int32, n*world.Size()), 0).Wait(ctx)
	}
}

func barrier(ctx context.Context, world *mpicx.Comm) error { return world.Barrier().Wait(ctx) }

func then(first, second func(context.Context, *mpicx.Comm) error) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, world *mpicx.Comm) error {
		if err := first(ctx, world); err != nil {
			return err
		}
		return second(ctx, world)
	}
}

var wrongs = []wrong{
	{"Bcast(root 0, 3 × float64)", "Reduce(Sum, root 0, 3 × float64)", 0, either(bcast[float64](3, 0), reduce(3, mpicx.Sum, 0))},
	{"Allreduce(Sum, 3 × float64)", "Bcast(root 1, 3 × float64)", 0, either(allreduce[float64](3, mpicx.Sum), bcast[float64](3, 1))},
	{"Allreduce(Sum, 1 × int)", "Allreduce(Max, 1 × int)", 0, either(allreduce[int](1, mpicx.Sum), allreduce[int](1, mpicx.Max))},
	{"Allreduce(Sum, 2 × int)", "Allreduce(Sum, 3 × int)", 0, either(allreduce[int](2, mpicx.Sum), allreduce[int](3, mpicx.Sum))},
	{"Allreduce(Sum, 1 × float64)", "Allreduce(Sum, 1 × int64)", 0, either(allreduce[float64](1, mpicx.Sum), allreduce[int64](1, mpicx.Sum))},
	{"Bcast(root 0, 1 × int)", "Bcast(root 1, 1 × int)", 0, either(bcast[int](1, 0), bcast[int](1, 1))},
	{"Bcast(root 0, 100000 × int)", "Bcast(root 1, 100000 × int)", 0, either(bcast[int](100_000, 0), bcast[int](100_000, 1))},
	{"Bcast(root 0, 4 × uint16)", "Bcast(root 0, 4 × bool)", 0, either(bcast[uint16](4, 0), bcast[bool](4, 0))},
	{"Gather(root 0, 1 × int32)", "Gather(root 0, 2 × int32)", 0, either(gatherOf(1), gatherOf(2))},
	{"Gather(root 0, 2 × int32)", "Gather(root 0, 2000 × int32)", 0, either(gatherOf(2), gatherOf(2000))},
	{"Barrier", "Bcast(root 1, 1 × int)", 0, either(barrier, bcast[int](1, 1))},
	{"Bcast(root 0, 1 × int)", "Barrier", 0, either(bcast[int](1, 0), barrier)},
	{"Bcast(root 0, 1 × int)", "Barrier", 2, either(then(bcast[int](1, 0), then(bcast[int](1, 0), barrier)), then(bcast[int](1, 0), barrier))},
	{"Split", "Allreduce(Sum, 1 × int)", 0, either(func(ctx context.Context, world *mpicx.Comm) error {
		return world.Split(0, 0).Wait(ctx)
	}, allreduce[int](1, mpicx.Sum))},
	{"Dup", "Allreduce(Sum, 1 × int)", 0, either(func(ctx context.Context, world *mpicx.Comm) error {
		return world.Dup().Wait(ctx)
	}, allreduce[int](1, mpicx.Sum))},
	{"TryAll", "Barrier", 0, either(func(ctx context.Context, world *mpicx.Comm) error {
		return world.TryAll(ctx, func(context.Context) error { return nil })
	}, barrier)},
	{"AllgatherValue", "GatherValue(root 0)", 0, either(func(ctx context.Context, world *mpicx.Comm) error {
		return mpicx.AllgatherValue(world, "a").Wait(ctx)
	}, func(ctx context.Context, world *mpicx.Comm) error { return mpicx.GatherValue(world, "b", 0).Wait(ctx) })},
	{"Allgather(1 × int)", "Alltoallv(int)", 0, either(func(ctx context.Context, world *mpicx.Comm) error {
		return mpicx.Allgather(world, make([]int, 1), make([]int, world.Size())).Wait(ctx)
	}, func(ctx context.Context, world *mpicx.Comm) error {
		counts := make([]int, world.Size())
		return mpicx.Alltoallv(world, []int{}, counts, []int{}, counts).Wait(ctx)
	})},
}

var differs = regexp.MustCompile(`^mpicx: \w+: (.+) at rank (\d+), (.+) at rank (\d+), both as collective call (\d+) of world[\w().]*, expected the same at all ranks(?:; and \d+ more)?(?:; dead: \[.*\])?$`)

// check says whether text is that of an error of the program.
func (w *wrong) check(text string) error {
	m := differs.FindStringSubmatch(text[max(0, strings.LastIndex(text, "mpicx: ")):])
	if m == nil {
		return fmt.Errorf("the text is %q", text)
	}
	of := func(rank string) string {
		if rank == "0" {
			return w.zero
		}
		return w.others
	}
	first, _ := strconv.Atoi(m[2])
	second, _ := strconv.Atoi(m[4])
	number := max(w.number, 1)
	if m[1] != of(m[2]) || m[3] != of(m[4]) || first >= second || m[5] != strconv.Itoa(number) {
		return fmt.Errorf("the text is %q, expected %s at rank 0, and %s at the others, in call %d", text, w.zero, w.others, number)
	}
	return nil
}

func (w *wrong) name(n int) string { return fmt.Sprintf("%s and %s/%d", w.zero, w.others, n) }

// Inside of Try and TryAll all ranks get it, and the communicator works afterwards.
func TestMismatchInTry(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for _, all := range []bool{false, true} {
			eachWrong(t, func(t *testing.T, w *wrong, n int) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.NoError(t, mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
					try := world.Try
					if all {
						try = world.TryAll
					}
					told := try(ctx, func(ctx context.Context) error { return then(w.program, barrier)(ctx, world) })
					sum := []int{0}
					for {
						err := world.TryAll(ctx, func(ctx context.Context) error {
							return mpicx.Allreduce(world, []int{1}, sum, mpicx.Sum).Wait(ctx)
						})
						if err == nil {
							break
						}
						told = err // of a rank that failed later
					}
					p, ok := errors.AsType[*mpicx.PropagatedError](told)
					if !ok {
						return fmt.Errorf("got %w", told)
					}
					for _, f := range p.Failures {
						mpicx.Throw(w.check(f.Message))
					}
					if sum[0] != n {
						return fmt.Errorf("the sum is %d", sum[0])
					}
					return nil
				}, mpicx.WithRanks(n), backend))
			})
		}
	})
}

func eachWrong(t *testing.T, test func(t *testing.T, w *wrong, n int)) {
	for i := range wrongs {
		for _, n := range []int{2, 3, 4, 5, 8} {
			t.Run(wrongs[i].name(n), func(t *testing.T) { test(t, &wrongs[i], n) })
		}
	}
}

// haltedIdle makes a communicator of two ranks, of which rank 1 is halted while no operation is
// pending: its call has needed no other rank, and then a message of another call arrives.
func haltedIdle(ctx context.Context, world *mpicx.Comm) *mpicx.Comm {
	g := mpicx.GraphCreate(world, nil, nil).MustGet(ctx)
	if world.Rank() == 1 {
		mpicx.NeighborAllgather(g, []int{1}, nil).MustWait(ctx)
		settle()
	}
	settle()
	if world.Rank() == 0 {
		mpicx.Bcast(g.Comm, []int{1}, 0).MustWait(ctx)
	}
	return g.Comm
}

// M3: a mismatch that no operation has reported is reported to all by the end of Try.
func TestMismatchAtTheEndOfTry(t *testing.T) {
	fakeTime(t)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		err := world.Try(ctx, func(ctx context.Context) error {
			c := haltedIdle(ctx, world)
			err := c.Try(ctx, func(context.Context) error { return nil })
			if err == nil && c.Rank() == 0 {
				err = c.Barrier().Wait(ctx)
			}
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "both as collective call 1 of world.graphcreate1") {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
}

// M3: it is reported by the end of the program, too, and peers are told.
func TestMismatchAtTheEndOfTheProgram(t *testing.T) {
	fakeTime(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		synctest.Test(t, func(t *testing.T) {
			var told error
			require.ErrorContains(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				haltedIdle(ctx, world)
				if world.Rank() == 0 {
					told = mpicx.Recv(world, []int{0}, 1, 0).Wait(ctx)
				}
				return nil
			}, mpicx.WithRanks(2), backend), "both as collective call 1 of world.graphcreate1")
			require.NoError(t, corruption(told, 1))
		})
	})
}

// Counts that differ between ranks are an error, even if neither their sums nor each rank's own
// count differ.
func TestCountsDiffer(t *testing.T) {
	program := func(ctx context.Context, world *mpicx.Comm) error {
		for _, each := range []int{1, 10_000} {
			counts := [...][]int{{each, 2 * each, 3 * each}, {3 * each, 2 * each, each}, {2 * each, each, 3 * each}}[world.Rank()]
			mine, all := make([]int, counts[world.Rank()]), make([]int, 6*each)
			for i, call := range [...]func() future.Waiter{
				func() future.Waiter { return mpicx.Allgatherv(world, mine, all, counts) },
				func() future.Waiter { return mpicx.ReduceScatter(world, all, mine, counts, mpicx.Sum) },
				func() future.Waiter {
					return mpicx.ReduceScatterFunc(world, all, mine, counts, func(a, b int) int { return a + b })
				},
			} {
				name := [...]string{"Allgatherv", "ReduceScatter", "ReduceScatterFunc"}[i]
				err := world.TryAll(ctx, func(ctx context.Context) error { return call().Wait(ctx) })
				p, ok := errors.AsType[*mpicx.PropagatedError](err)
				if !ok || !strings.HasPrefix(p.Failures[0].Message, "mpicx: "+name) || !strings.Contains(p.Failures[0].Message, "with other counts than at rank") {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		return nil
	}
	for _, algorithm := range []string{"", "tree", "star", "direct"} {
		t.Run("goroutines, "+algorithm, func(t *testing.T) {
			collective.Forced = map[string]string{"ReduceScatter": algorithm}
			if algorithm != "star" {
				collective.Forced["Allgatherv"] = algorithm
			}
			defer func() { collective.Forced = nil }()
			mpicxtest.Run(t, 3, program)
		})
	}
	t.Run("processes", func(t *testing.T) { mpicxtest.RunProcesses(t, 3, program) })
}

// toZero makes a communicator in which all others send to rank 0, and it to nobody.
func toZero(ctx context.Context, world *mpicx.Comm) (place, error) {
	from, to := numbers(world.Size()-1, 1), []int(nil)
	if world.Rank() > 0 {
		from, to = nil, []int{0}
	}
	g, err := mpicx.GraphCreate(world, from, to).Get(ctx)
	if err != nil {
		return place{}, err
	}
	return place{Comm: g.Comm, near: g}, nil
}

// withHalo is grid, and one call in it.
func withHalo(ctx context.Context, world *mpicx.Comm) (p place, err error) {
	if p, err = grid(ctx, world); err == nil {
		p.halo, err = mpicx.NewHalo[float64](p.grid, []int{4}, 1, false).Get(ctx)
	}
	return p, err
}

// union makes a communicator of two groups: rank 0, and the others.
func union(ctx context.Context, world *mpicx.Comm) (place, error) {
	local, bridge, remoteLeader := beside(ctx, world, 1)
	ic, err := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 0).Get(ctx)
	if err != nil {
		return place{}, err
	}
	return place{Comm: ic.Union(), inter: ic}, nil
}

// inUnions are all calls that the ranks of a union of two groups can make.
func inUnions(n int) []callee {
	return append(callees(n), callee{"Merge", at(func(p place) *future.Future[*mpicx.Comm] { return p.inter.Merge(false) })})
}

var exchanged = callee{"Halo(float64)", at(func(p place) *future.Future[struct{}] { return p.halo.Start(make([]float64, p.halo.Len())) })}

// Ranks that are in a TryAll, which is two calls, are told if another rank has made a call in its
// place that waits for nobody.
func TestMismatchWithTryAll(t *testing.T) {
	fakeTime(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorContains(t, mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() > 0 {
				return world.TryAll(ctx, func(context.Context) error { return nil })
			}
			world.Dup().MustWait(ctx)
			return mpicx.Recv(world, []int{0}, 1, 0).Wait(ctx) // the error ends it
		}, mpicx.WithRanks(3), hook.Backend[mpicx.Option]("blackchannel")), "Dup at rank 0, TryAll at rank")
		require.NoError(t, ctx.Err())
	})
}

// A meeting is where ranks make calls: rank 0 one of these, and the others one of those.
type meeting struct {
	name         string
	make         func(context.Context, *mpicx.Comm) (place, error)
	zero, others []callee
	number       int // of the calls
}

// Whichever calls goroutine ranks have made in one place, also if they do nothing then but wait for
// each other, a plain Run ends with an error that has both.
func TestMismatchBetweenGoroutines(t *testing.T) {
	fakeTime(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for _, n := range []int{2, 3} {
			for _, m := range []meeting{
				{"grid", grid, inGrids(n), inGrids(n), 1},
				{"graph", toZero, neighborly(n-1, 0), callees(n), 1},
				{"halo", withHalo, []callee{exchanged}, inGrids(n), 2},
				{"others' halo", withHalo, inGrids(n), []callee{exchanged}, 2},
				{"union", union, inUnions(n), inUnions(n), 1},
			} {
				t.Run(fmt.Sprintf("%s of %d", m.name, n), func(t *testing.T) { m.play(t, n, backend) })
			}
		}
	})
}

// play has n ranks make each pair of different calls.
func (m meeting) play(t *testing.T, n int, backend mpicx.Option) {
	pairs := 0
	for zero, others := range product(m.zero, m.others) {
		if pairs++; zero.text == others.text || testing.Short() && pairs%7 > 0 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
				p, err := m.make(ctx, world)
				if err != nil {
					return err
				}
				return eitherCall(ctx, p, &zero, &others)
			}, mpicx.WithRanks(n), backend)
			w := wrong{zero: zero.text, others: others.text, number: m.number}
			require.Error(t, err, w.name(n))
			for _, line := range strings.Split(err.Error(), "\n") {
				if err := w.check(line); err != nil && !w.isOfAnother(line) {
					require.NoError(t, err, w.name(n))
				}
			}
			require.NoError(t, ctx.Err(), w.name(n))
		})
	}
}

// The test covers all kinds of calls of the program that are compared.
func TestAllCallsMeetAllOthers(t *testing.T) {
	missing := make(map[string]bool)
	for k := signature.Agree; !strings.HasPrefix(k.String(), "Kind("); k++ {
		missing[k.String()] = true
	}
	for _, k := range []signature.Kind{signature.Agree, signature.AgreeFailed, signature.Shrink, signature.Replace,
		signature.Release, signature.Background} {
		delete(missing, k.String())
	}
	for _, c := range slices.Concat(inGrids(3), inUnions(3), []callee{exchanged}) {
		name, _, _ := strings.Cut(c.text, "(")
		delete(missing, name)
	}
	require.Empty(t, missing)
}

// In real time, too.
func TestMismatchOfRanksThatWait(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		w := wrong{"Reduce(Sum, root 0, 3 × float64)", "Reduce(Sum, root 1, 3 × float64)", 0, either(reduce(3, mpicx.Sum, 0), reduce(3, mpicx.Sum, 1))}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := mpicx.Run(ctx, w.program, mpicx.WithRanks(2), backend)
		require.Error(t, err)
		for _, line := range strings.Split(err.Error(), "\n") {
			require.NoError(t, w.check(line))
		}
	})
}

// A place is where ranks make calls: a communicator, and where it has neighbours, these.
type place struct {
	*mpicx.Comm
	near  mpicx.Neighborhood   // nil: there are none
	grid  *mpicx.Cart          // nil: it is none
	halo  *mpicx.Halo[float64] // nil: none has been made
	inter *mpicx.Intercomm     // whose union it is; nil: of none
}

// A callee is a collective call and its text.
type callee struct {
	text string
	call func(ctx context.Context, p place) error
}

// on is a program on the communicator of a place.
func on(call func(context.Context, *mpicx.Comm) error) func(context.Context, place) error {
	return func(ctx context.Context, p place) error { return call(ctx, p.Comm) }
}

// at is a call that returns a future.
func at[F future.Waiter](call func(p place) F) func(context.Context, place) error {
	return func(ctx context.Context, p place) error { return call(p).Wait(ctx) }
}

// callees are collective calls of which no two fit.
func callees(n int) []callee {
	type done = *future.Future[struct{}]
	f := func(k int) []float64 { return make([]float64, k) }
	ones := slices.Repeat([]int{1}, n)
	sum := func(a, b float64) float64 { return a + b }
	return []callee{
		{"Barrier", on(barrier)},
		{"Bcast(root 0, 3 × float64)", on(bcast[float64](3, 0))},
		{"Bcast(root 1, 3 × float64)", on(bcast[float64](3, 1))},
		{"Bcast(root 0, 4 × float64)", on(bcast[float64](4, 0))},
		{"Bcast(root 0, 3 × int32)", on(bcast[int32](3, 0))},
		{"Bcast(root 1, 7 × byte)", on(bcast[byte](7, 1))},
		{"Reduce(Sum, root 0, 3 × float64)", on(reduce(3, mpicx.Sum, 0))},
		{"Reduce(Sum, root 1, 3 × float64)", on(reduce(3, mpicx.Sum, 1))},
		{"Reduce(Max, root 1, 3 × float64)", on(reduce(3, mpicx.Max, 1))},
		{"ReduceFunc(root 1, 3 × float64)", at(func(p place) done { return mpicx.ReduceFunc(p.Comm, f(3), f(3), sum, 1) })},
		{"ReduceValue(root 0, float64)", at(func(p place) *future.Future[float64] { return mpicx.ReduceValue(p.Comm, 1.0, sum, 0) })},
		{"Allreduce(Sum, 3 × float64)", on(allreduce[float64](3, mpicx.Sum))},
		{"AllreduceFunc(3 × float64)", at(func(p place) done { return mpicx.AllreduceFunc(p.Comm, f(3), f(3), sum) })},
		{"AllreduceValue(float64)", at(func(p place) *future.Future[float64] { return mpicx.AllreduceValue(p.Comm, 1.0, sum) })},
		{"Gather(root 0, 1 × int32)", on(gatherOf(1))},
		{"Gatherv(root 1, float64)", at(func(p place) done { return mpicx.Gatherv(p.Comm, f(1), f(n), ones, 1) })},
		{"GatherValue(root 0)", at(func(p place) *future.Future[[]string] { return mpicx.GatherValue(p.Comm, "a", 0) })},
		{"Scatter(root 1, 1 × float64)", at(func(p place) done { return mpicx.Scatter(p.Comm, f(n), f(1), 1) })},
		{"Scatterv(root 0, float64)", at(func(p place) done { return mpicx.Scatterv(p.Comm, f(n), ones, f(1), 0) })},
		{"ScatterValue(root 1)", at(func(p place) *future.Future[string] { return mpicx.ScatterValue(p.Comm, make([]string, n), 1) })},
		{"Allgather(1 × float64)", at(func(p place) done { return mpicx.Allgather(p.Comm, f(1), f(n)) })},
		{"Allgatherv(float64)", at(func(p place) done { return mpicx.Allgatherv(p.Comm, f(1), f(n), ones) })},
		{"AllgatherValue", at(func(p place) *future.Future[[]string] { return mpicx.AllgatherValue(p.Comm, "a") })},
		{fmt.Sprintf("Alltoall(%d × float64)", n), at(func(p place) done { return mpicx.Alltoall(p.Comm, f(n), f(n)) })},
		{"Alltoallv(float64)", at(func(p place) done { return mpicx.Alltoallv(p.Comm, f(n), ones, f(n), ones) })},
		{fmt.Sprintf("ReduceScatter(Sum, %d × float64)", n), at(func(p place) done {
			return mpicx.ReduceScatter(p.Comm, f(n), f(1), ones, mpicx.Sum)
		})},
		{fmt.Sprintf("ReduceScatterBlock(Sum, %d × float64)", n), at(func(p place) done {
			return mpicx.ReduceScatterBlock(p.Comm, f(n), f(1), mpicx.Sum)
		})},
		{fmt.Sprintf("ReduceScatterFunc(%d × float64)", n), at(func(p place) done {
			return mpicx.ReduceScatterFunc(p.Comm, f(n), f(1), ones, sum)
		})},
		{fmt.Sprintf("ReduceScatterBlockFunc(%d × float64)", n), at(func(p place) done {
			return mpicx.ReduceScatterBlockFunc(p.Comm, f(n), f(1), sum)
		})},
		{"Scan(Sum, 3 × float64)", at(func(p place) done { return mpicx.Scan(p.Comm, f(3), f(3), mpicx.Sum) })},
		{"ScanFunc(3 × float64)", at(func(p place) done { return mpicx.ScanFunc(p.Comm, f(3), f(3), sum) })},
		{"ScanValue(float64)", at(func(p place) *future.Future[float64] { return mpicx.ScanValue(p.Comm, 1.0, sum) })},
		{"Exscan(Sum, 3 × float64)", at(func(p place) done { return mpicx.Exscan(p.Comm, f(3), f(3), mpicx.Sum) })},
		{"ExscanFunc(3 × float64)", at(func(p place) done { return mpicx.ExscanFunc(p.Comm, f(3), f(3), sum) })},
		{"ExscanValue(float64)", at(func(p place) *future.Future[float64] { return mpicx.ExscanValue(p.Comm, 1.0, sum) })},
		{"BcastValue(root 0)", at(func(p place) *future.Future[string] { return mpicx.BcastValue(p.Comm, "a", 0) })},
		{"Dup", at(func(p place) *future.Future[*mpicx.Comm] { return p.Dup() })},
		{"Split", at(func(p place) *future.Future[*mpicx.Comm] { return p.Split(0, 0) })},
		{"SplitShared", at(func(p place) *future.Future[*mpicx.Comm] { return p.SplitShared(0) })},
		{"Create", at(func(p place) *future.Future[*mpicx.Comm] { return p.Create(p.Group()) })},
		{"CartCreate", at(func(p place) *future.Future[*mpicx.Cart] { return mpicx.CartCreate(p.Comm, []int{n}, nil) })},
		{"GraphCreate", at(func(p place) *future.Future[*mpicx.Graph] { return mpicx.GraphCreate(p.Comm, nil, nil) })},
		{"CreateIntercomm", at(func(p place) *future.Future[*mpicx.Intercomm] {
			return mpicx.CreateIntercomm(p.Comm, 0, p.Comm, n-1, 0)
		})},
		{"Fprintf", func(ctx context.Context, p place) error { return p.Fprintf(ctx, io.Discard, "a") }},
		{"TryAll", func(ctx context.Context, p place) error {
			return p.TryAll(ctx, func(context.Context) error { return nil })
		}},
		{"Close", func(ctx context.Context, p place) error { return p.Close(ctx) }},
	}
}

// neighborly are those of neighbours, of whom a rank has from and to so many.
func neighborly(from, to int) []callee {
	type done = *future.Future[struct{}]
	f := func(k int) []float64 { return make([]float64, k) }
	ones := func(k int) []int { return slices.Repeat([]int{1}, k) }
	return []callee{
		{"NeighborAllgather(1 × float64)", at(func(p place) done { return mpicx.NeighborAllgather(p.near, f(1), f(from)) })},
		{"NeighborAllgatherv(float64)", at(func(p place) done { return mpicx.NeighborAllgatherv(p.near, f(1), f(from), ones(from)) })},
		{"NeighborAlltoall(float64)", at(func(p place) done { return mpicx.NeighborAlltoall(p.near, f(to), f(from)) })},
		{"NeighborAlltoallv(float64)", at(func(p place) done {
			return mpicx.NeighborAlltoallv(p.near, f(to), ones(to), f(from), ones(from))
		})},
	}
}

// ofGrids are those of grids of one dimension.
func ofGrids() []callee {
	return []callee{
		{"CartSub", at(func(p place) *future.Future[*mpicx.Cart] { return p.grid.Sub(true) })},
		{"NewHalo", at(func(p place) *future.Future[*mpicx.Halo[float64]] {
			return mpicx.NewHalo[float64](p.grid, []int{4}, 1, false)
		})},
	}
}

// inGrids are all calls that the ranks of a periodic grid can make.
func inGrids(n int) []callee { return slices.Concat(callees(n), neighborly(2, 2), ofGrids()) }

// grid makes such a grid.
func grid(ctx context.Context, world *mpicx.Comm) (place, error) {
	g, err := mpicx.CartCreate(world, []int{world.Size()}, []bool{true}).Get(ctx)
	if err != nil {
		return place{}, err
	}
	return place{Comm: g.Comm, near: g, grid: g}, nil
}

// afresh makes a grid for what is wrong, once all ranks have been told of what was so before.
func afresh(ctx context.Context, world *mpicx.Comm) (p place, err error) {
	for {
		err = world.TryAll(ctx, func(ctx context.Context) (err error) {
			p, err = grid(ctx, world)
			return err
		})
		if _, again := errors.AsType[*mpicx.PropagatedError](err); !again {
			return p, err
		}
	}
}

// eitherCall makes one call at rank 0 and another at the others, and then a Barrier if that has
// needed nobody.
func eitherCall(ctx context.Context, p place, zero, others *callee) error {
	c := others
	if p.Rank() == 0 {
		c = zero
	}
	if err := c.call(ctx, p); err != nil {
		return err
	}
	return p.Barrier().Wait(ctx)
}

// checkAll says whether all failures are errors of w, or also says that they are right.
func checkAll(err error, w *wrong, also func(mpicx.Failure) bool) error {
	p, ok := errors.AsType[*mpicx.PropagatedError](err)
	if !ok {
		return fmt.Errorf("%s: got %w", w.name(0), err)
	}
	for _, f := range p.Failures {
		if err := w.check(f.Message); err != nil && !w.isOfAnother(f.Message) && !also(f) {
			return fmt.Errorf("%s: %w", w.name(0), err)
		}
	}
	return nil
}

// isOfAnother says whether the text is of a mismatch that is found only in what follows the calls:
// an agreement, or the second of the two calls that a TryAll and a CreateIntercomm count as.
func (w *wrong) isOfAnother(text string) bool {
	for _, double := range []string{"TryAll", "CreateIntercomm"} {
		if (w.zero == double || w.others == double) && strings.Contains(text, double+" at rank") &&
			strings.Contains(text, fmt.Sprint("both as collective call ", max(w.number, 1)+1)) {
			return true
		}
	}
	both := "the ranks call %s and %s in the same place"
	return strings.Contains(text, fmt.Sprintf(both, w.zero, w.others)) || strings.Contains(text, fmt.Sprintf(both, w.others, w.zero))
}

func none(mpicx.Failure) bool { return false }

// Whichever calls two processes have made in one place, also if they do nothing then but wait for
// each other, all ranks are told.
func TestMismatchBetweenProcesses(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			mpicxtest.RunProcesses(t, n, func(ctx context.Context, world *mpicx.Comm) error {
				pairs := 0
				for zero, others := range product(inGrids(n), inGrids(n)) {
					if pairs++; zero.text == others.text || pairs%(11*n) > 0 || testing.Short() && pairs%7 > 0 {
						continue
					}
					p, err := afresh(ctx, world)
					if err != nil {
						return err
					}
					w := wrong{zero: zero.text, others: others.text}
					err = world.TryAll(ctx, func(ctx context.Context) error { return eitherCall(ctx, p, &zero, &others) })
					mpicx.Throw(checkAll(err, &w, none))
				}
				_, err := afresh(ctx, world)
				return err
			})
		})
	}
}

// An error that a rank signals while others have made different calls comes to all, alone or with
// the mismatch; and then the communicator works.
func TestMismatchAndSignal(t *testing.T) {
	errAlarm := errors.New("an alarm")
	isAlarm := func(f mpicx.Failure) bool { return f.Message == errAlarm.Error() }
	race := func(rounds int) func(context.Context, *mpicx.Comm) error {
		return func(ctx context.Context, world *mpicx.Comm) error {
			all := callees(3)
			for round := range rounds {
				p, err := afresh(ctx, world)
				if err != nil {
					return err
				}
				zero, others := &all[round%9], &all[(round+4)%9]
				w := wrong{zero: zero.text, others: others.text}
				alarmed := false
				err = world.TryAll(ctx, func(ctx context.Context) error {
					if world.Rank() < 2 {
						return eitherCall(ctx, p, zero, others)
					}
					return errAlarm
				})
				for err != nil {
					if err := checkAll(err, &w, isAlarm); err != nil {
						return err
					}
					p, _ := errors.AsType[*mpicx.PropagatedError](err)
					for _, f := range p.Failures {
						alarmed = alarmed || isAlarm(f)
					}
					err = world.TryAll(ctx, func(ctx context.Context) error { return world.Barrier().Wait(ctx) })
				}
				if !alarmed {
					return fmt.Errorf("%s: no alarm", w.name(3))
				}
			}
			return nil
		}
	}
	t.Run("goroutines", func(t *testing.T) { mpicxtest.Run(t, 3, race(90)) })
	t.Run("processes", func(t *testing.T) { mpicxtest.RunProcesses(t, 3, race(18)) })
}

// A rank that has waited in vain for a collective operation may go on to an Agree, in which the
// others are, however long they have waited: that is no mismatch, as all of them may come to the
// operation later.
func TestAgreeAfterPatience(t *testing.T) {
	program := func(ctx context.Context, world *mpicx.Comm) error {
		var met future.Waiter
		if world.Rank() != 0 {
			met = world.Barrier()
			patient, cancel := context.WithTimeout(ctx, 300*time.Millisecond) // their calls are compared meanwhile
			defer cancel()
			if err := met.Wait(patient); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("Barrier: %w", err)
			}
		}
		if all, err := world.Agree(min(1, world.Rank())).Get(ctx); err != nil || all != 0 {
			return fmt.Errorf("Agree: %d, %w", all, err)
		}
		if met == nil {
			met = world.Barrier()
		}
		return met.Wait(ctx)
	}
	t.Run("goroutines", func(t *testing.T) { mpicxtest.Run(t, 3, program) })
	t.Run("processes", func(t *testing.T) { mpicxtest.RunProcesses(t, 3, program) })
}

// A begunCall is a call that a program begins, and does not wait for.
type begunCall struct {
	text  string
	begin func(c *mpicx.Comm)
}

// No two of them fit.
var begunCalls = []begunCall{
	{"Barrier", func(c *mpicx.Comm) { c.Barrier() }},
	{"Bcast(root 0, 1 × int)", func(c *mpicx.Comm) { mpicx.Bcast(c, []int{0}, 0) }},
	{"Reduce(Sum, root 0, 1 × int)", func(c *mpicx.Comm) { mpicx.Reduce(c, []int{0}, []int{0}, mpicx.Sum, 0) }},
	{"Reduce(Sum, root 1, 1 × int)", func(c *mpicx.Comm) { mpicx.Reduce(c, []int{0}, []int{0}, mpicx.Sum, 1) }},
	{"Allreduce(Sum, 1 × int)", func(c *mpicx.Comm) { mpicx.Allreduce(c, []int{0}, []int{0}, mpicx.Sum) }},
	{"Allreduce(Max, 1 × int)", func(c *mpicx.Comm) { mpicx.Allreduce(c, []int{0}, []int{0}, mpicx.Max) }},
	{"GatherValue(root 0)", func(c *mpicx.Comm) { mpicx.GatherValue(c, "a", 0) }},
	{"Dup", func(c *mpicx.Comm) { c.Dup() }},
}

// M3: different calls are reported even if no program waits for either.
func TestMismatchOfBegunCalls(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for zero, others := range product(begunCalls, begunCalls) {
			for _, n := range []int{2, 3, 5} {
				err := mpicx.Run(context.Background(), func(_ context.Context, world *mpicx.Comm) error {
					call := others
					if world.Rank() == 0 {
						call = zero
					}
					call.begin(world)
					return nil
				}, mpicx.WithRanks(n), backend)
				what := fmt.Sprintf("%s and %s, %d ranks", zero.text, others.text, n)
				switch {
				case zero.text == others.text:
					assert.NoError(t, err, what)
				case strings.HasSuffix(t.Name(), "ulfm") && (zero.text == "Dup" || others.text == "Dup"):
					assert.ErrorContains(t, err, "Dup", what) // perhaps that a rank has returned
				default:
					assert.ErrorContains(t, err, zero.text+" at rank 0, "+others.text+" at rank", what)
				}
			}
		}
	})
}

// badCalls are calls of three ranks whose arguments are good, or bad at rank 1 alone. All others
// need rank 1. The group is wider than their communicator.
func badCalls(wider *mpicx.Group) map[string]func(p place, bad bool) future.Waiter {
	const n, long = 3, 100_000
	f := func(n int) []float64 { return make([]float64, n) }
	plus := func(k int, bad bool) int {
		if bad {
			k++
		}
		return k
	}
	counts := func(k int, bad bool) []int { return []int{plus(k, bad), k, k} }
	return map[string]func(p place, bad bool) future.Waiter{
		"NewHalo": func(p place, bad bool) future.Waiter {
			return mpicx.NewHalo[int](p.grid, []int{plus(0, !bad)}, 1, false)
		},
		"Halo":           func(p place, bad bool) future.Waiter { return p.halo.Start(f(plus(p.halo.Len(), bad))) },
		"Gather of long": func(p place, bad bool) future.Waiter { return mpicx.Gather(p.Comm, f(long), f(plus(n*long, bad)), 1) },
		"Gatherv of long": func(p place, bad bool) future.Waiter {
			return mpicx.Gatherv(p.Comm, f(long), f(n*long), counts(long, bad), 1)
		},
		"Scatter":      func(p place, bad bool) future.Waiter { return mpicx.Scatter(p.Comm, f(plus(n, bad)), f(1), 1) },
		"Scatterv":     func(p place, bad bool) future.Waiter { return mpicx.Scatterv(p.Comm, f(n), counts(1, bad), f(1), 1) },
		"ScatterValue": func(p place, bad bool) future.Waiter { return mpicx.ScatterValue(p.Comm, f(plus(n, bad)), 1) },
		"BcastValue": func(p place, bad bool) future.Waiter {
			return mpicx.BcastValue(p.Comm, []any{1, func() {}}[:plus(1, bad)], 1)
		},
		"Allgatherv": func(p place, bad bool) future.Waiter {
			return mpicx.Allgatherv(p.Comm, f(plus(1, bad)), f(n), counts(1, false))
		},
		"Alltoallv": func(p place, bad bool) future.Waiter {
			return mpicx.Alltoallv(p.Comm, f(n), counts(1, bad), f(n), counts(1, false))
		},
		"ReduceScatter": func(p place, bad bool) future.Waiter {
			return mpicx.ReduceScatter(p.Comm, f(n), f(plus(1, bad)), counts(1, false), mpicx.Sum)
		},
		"NeighborAllgatherv": func(p place, bad bool) future.Waiter {
			return mpicx.NeighborAllgatherv(p.near, f(1), f(plus(2, bad)), []int{1, 1})
		},
		"NeighborAlltoall": func(p place, bad bool) future.Waiter { return mpicx.NeighborAlltoall(p.near, f(plus(2, bad)), f(2)) },
		"NeighborAlltoallv": func(p place, bad bool) future.Waiter {
			return mpicx.NeighborAlltoallv(p.near, f(2), []int{1, plus(1, bad)}, f(2), []int{1, 1})
		},
		"Split":             func(p place, bad bool) future.Waiter { return p.Split(-7*plus(0, bad), 0) },
		"Create":            func(p place, bad bool) future.Waiter { return p.Create([]*mpicx.Group{p.Group(), wider}[plus(0, bad)]) },
		"CartCreate":        func(p place, bad bool) future.Waiter { return mpicx.CartCreate(p.Comm, []int{plus(n, bad)}, nil) },
		"CartSub":           func(p place, bad bool) future.Waiter { return p.grid.Sub(make([]bool, plus(1, bad))...) },
		"GraphCreate":       func(p place, bad bool) future.Waiter { return mpicx.GraphCreate(p.Comm, nil, []int{99}[:plus(0, bad)]) },
		"GraphCreate of -1": func(p place, bad bool) future.Waiter { return mpicx.GraphCreate(p.Comm, []int{-1}[:plus(0, bad)], nil) },
	}
}

// Arguments that differ between ranks may be bad at one alone. It has the error, and the ranks that
// need it have one too, even if no program tells another one.
func TestBadAtOneRank(t *testing.T) {
	program := func(ctx context.Context, world *mpicx.Comm) error {
		c := world.Split(world.Rank()/3, 0).MustGet(ctx)
		calls := badCalls(world.Group())
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			if c.Size() == 3 {
				p, err := withHalo(ctx, c)
				if err != nil {
					return err
				}
				err = calls[name](p, c.Rank() == 1).Wait(ctx)
				if e, ok := err.(*mpicx.MPIError); !ok || c.Rank() != 1 && !strings.Contains(e.Text, "rank 1") {
					return fmt.Errorf("%s at rank %d: %w", name, c.Rank(), err)
				}
			}
			world.Barrier().MustWait(ctx)
		}
		return nil
	}
	t.Run("goroutines", func(t *testing.T) { mpicxtest.Run(t, 4, program) })
	t.Run("processes", func(t *testing.T) { mpicxtest.RunProcesses(t, 4, program) })
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
