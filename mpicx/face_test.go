package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A reduction's function that would wait, or begins a collective operation, ends its reduction with
// an error that says so: it holds up the goroutine that completes the messages, whoever's that is.
func TestReductionThatWaits(t *testing.T) {
	bg := context.Background()
	type program struct {
		call func(world *mpicx.Comm)
		want string // part of what all are told
	}
	programs := map[string]program{
		"Wait":    {func(world *mpicx.Comm) { _ = mpicx.Recv(world, []int{0}, 0, 99).Wait(bg) }, "its function waits"},
		"WaitAny": {func(world *mpicx.Comm) { _, _ = future.WaitAny(bg, mpicx.Recv(world, []int{0}, 0, 99)) }, "its function waits"},
		"Done":    {func(world *mpicx.Comm) { <-mpicx.Recv(world, []int{0}, 0, 99).Done() }, "its function waits"},
		"goroutine": {func(world *mpicx.Comm) {
			err := future.Go(func() (struct{}, error) { return struct{}{}, mpicx.Recv(world, []int{0}, 0, 99).Wait(bg) }).Wait(bg)
			mpicx.Throw(err)
		}, "its function waits"},
		"Signal": {func(world *mpicx.Comm) { mpicx.Throw(world.Signal(bg, errors.New("bad element"))) }, "bad element"},
		"Try": {func(world *mpicx.Comm) {
			mpicx.Throw(world.Try(bg, func(context.Context) error { return errors.New("bad element") }))
		}, "bad element"},
		"deep": {func(world *mpicx.Comm) { deep(1000, func() { _ = world.Barrier().Wait(bg) }) }, "its function begins Barrier on world"},
	}
	for _, call := range callees(4) {
		name, _, _ := strings.Cut(call.text, "(")
		if slices.Contains([]string{"Barrier", "Dup", "Split", "SplitShared", "Create", "CartCreate", "GraphCreate", "Close"}, name) {
			begins := func(world *mpicx.Comm) { _ = call.begin(place{Comm: world}).Wait(bg) }
			programs[name] = program{begins, "its function begins " + name + " on world"}
		}
	}
	for name, program := range inOrder(programs) {
		for op, reduce := range inOrder(reductions) {
			mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
				err := world.Try(ctx, func(ctx context.Context) error {
					f := reduce(world, func(a, b int) int { program.call(world); return a + b })
					mpicx.Throw(f.Wait(ctx))
					return world.Barrier().Wait(ctx)
				})
				mpicx.Throw(explain(isA[*mpicx.PropagatedError](err), "%s in %s", name, op))
				require.ErrorContains(t, err, program.want, op)
				if own, is := errors.AsType[*mpicx.MPIError](err); is && program.want != "bad element" {
					require.Equal(t, strings.TrimSuffix(op, " of strings"), own.Op)
				}
				return nil
			})
		}
	}
}

// A combiner is a function of a reduction.
type combiner = func(a, b int) int

// reductions are operations that call one.
var reductions = map[string]func(c *mpicx.Comm, op combiner) future.Waiter{
	"AllreduceFunc":  func(c *mpicx.Comm, op combiner) future.Waiter { return mpicx.AllreduceFunc(c, []int{1}, []int{0}, op) },
	"ReduceFunc":     func(c *mpicx.Comm, op combiner) future.Waiter { return mpicx.ReduceFunc(c, []int{1}, []int{0}, op, 0) },
	"ScanFunc":       func(c *mpicx.Comm, op combiner) future.Waiter { return mpicx.ScanFunc(c, []int{1}, []int{0}, op) },
	"ExscanFunc":     func(c *mpicx.Comm, op combiner) future.Waiter { return mpicx.ExscanFunc(c, []int{1}, []int{0}, op) },
	"AllreduceValue": func(c *mpicx.Comm, op combiner) future.Waiter { return mpicx.AllreduceValue(c, 1, op) },
	"ReduceValue":    func(c *mpicx.Comm, op combiner) future.Waiter { return mpicx.ReduceValue(c, 1, op, 0) },
	"ScanValue":      func(c *mpicx.Comm, op combiner) future.Waiter { return mpicx.ScanValue(c, 1, op) },
	"ExscanValue":    func(c *mpicx.Comm, op combiner) future.Waiter { return mpicx.ExscanValue(c, 1, op) },
	"ReduceScatterBlockFunc": func(c *mpicx.Comm, op combiner) future.Waiter {
		return mpicx.ReduceScatterBlockFunc(c, slices.Repeat([]int{1}, c.Size()), []int{0}, op)
	},
	"ReduceScatterFunc": func(c *mpicx.Comm, op combiner) future.Waiter {
		ones := slices.Repeat([]int{1}, c.Size())
		return mpicx.ReduceScatterFunc(c, ones, []int{0}, ones, op)
	},
	"ReduceValue of strings": func(c *mpicx.Comm, op combiner) future.Waiter {
		return mpicx.ReduceValue(c, "", func(a, b string) string { return fmt.Sprint(op(1, 1)) }, c.Size()-1)
	},
	"AllreduceFunc of strings": func(c *mpicx.Comm, op combiner) future.Waiter {
		return mpicx.AllreduceFunc(c, []string{""}, make([]string, 1), func(a, b string) string { return fmt.Sprint(op(1, 1)) })
	},
}

// deep calls fn below n other calls on the stack.
func deep(n int, fn func()) {
	if n == 0 {
		fn()
		return
	}
	deep(n-1, fn)
}

// A nil context or function is an argument like others: nothing has been told or begun.
func TestNilArguments(t *testing.T) {
	oneProcess(t)
	var none context.Context
	called := func(context.Context) error { return errors.New("called") }
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		_, diagnosed := world.Diagnose(none)
		for op, err := range map[string]error{
			"Diagnose":    diagnosed,
			"Signal":      world.Signal(none, errors.New("some")),
			"SignalError": world.SignalError(none, 1),
			"Try":         world.Try(none, called),
			"TryAll":      world.TryAll(none, called),
			"Guard":       world.Guard(none, called),
			"Close":       world.Close(none),
			"Run":         mpicx.Run(none, returns),
		} {
			mpicx.Throw(isMPIError(err, op, mpicx.ClassOther, "nil context"))
		}
		for op, err := range map[string]error{"Try": world.Try(ctx, nil), "TryAll": world.TryAll(ctx, nil), "Guard": world.Guard(ctx, nil), "Run": mpicx.Run(ctx, nil)} {
			mpicx.Throw(isMPIError(err, op, mpicx.ClassOther, "nil function"))
		}
		mpicx.Throw(isMPIError(world.Signal(ctx, nil), "Signal", mpicx.ClassOther, "nil error"))
		mpicx.Throw(nil) // throws nothing
		return world.Barrier().Wait(ctx)
	})
	_, err := mpicx.Initialize(none)
	require.NoError(t, isMPIError(err, "Initialize", mpicx.ClassOther, "nil context"))
}

// After its Run, a communicator has no peers: whatever uses it ends with an error that
// says so, and so does what was pending.
func TestAfterRun(t *testing.T) {
	oneProcess(t) // the job is over only with the process
	for name, program := range map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"returned":  returns,
		"corrupted": func(ctx context.Context, world *mpicx.Comm) error { return errors.New("no luck") },
		"closed":    func(ctx context.Context, world *mpicx.Comm) error { return world.Close(ctx) },
	} {
		synctest.Test(t, func(t *testing.T) {
			const n = 3
			var comms [n][]*mpicx.Comm
			var pending [n]future.Waiter
			_ = mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
				r, dup := world.Rank(), world.Dup().MustGet(ctx)
				comms[r] = []*mpicx.Comm{world, dup}
				pending[r] = mpicx.Recv(dup, []int{0}, (r+1)%n, 5)
				world.Barrier().MustWait(ctx)
				return program(ctx, world)
			}, mpicx.WithRanks(n))
			for r := range n {
				for _, c := range comms[r] {
					require.NoError(t, allSay(t.Context(), c, "is over"))
					require.NoError(t, scopesSay(t.Context(), c, "is over"))
				}
				err := pending[r].Wait(t.Context())
				require.Error(t, err)
				if name == "returned" && mpicx.Backend != "ulfm" {
					require.NoError(t, isMPIError(err, "Recv", mpicx.ClassOther, fmt.Sprintf("rank %d has returned", (r+1)%n)))
				}
			}
		})
	}
}
