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

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
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
