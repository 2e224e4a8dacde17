package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

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
