package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A reduction's function that would wait, or begins a collective operation, ends its
// reduction with an error that says so: it holds up the goroutine that completes the
// messages, whoever's that is.
func TestReductionThatWaits(t *testing.T) {
	type combine = func(a, b int) int
	reductions := map[string]func(c *mpicx.Comm, op combine) future.Waiter{
		"AllreduceFunc":  func(c *mpicx.Comm, op combine) future.Waiter { return mpicx.AllreduceFunc(c, []int{1}, []int{0}, op) },
		"ReduceFunc":     func(c *mpicx.Comm, op combine) future.Waiter { return mpicx.ReduceFunc(c, []int{1}, []int{0}, op, 0) },
		"ScanFunc":       func(c *mpicx.Comm, op combine) future.Waiter { return mpicx.ScanFunc(c, []int{1}, []int{0}, op) },
		"ExscanFunc":     func(c *mpicx.Comm, op combine) future.Waiter { return mpicx.ExscanFunc(c, []int{1}, []int{0}, op) },
		"AllreduceValue": func(c *mpicx.Comm, op combine) future.Waiter { return mpicx.AllreduceValue(c, 1, op) },
		"ReduceScatterFunc": func(c *mpicx.Comm, op combine) future.Waiter {
			ones := slices.Repeat([]int{1}, c.Size())
			return mpicx.ReduceScatterFunc(c, ones, []int{0}, ones, op)
		},
		"ReduceValue of strings": func(c *mpicx.Comm, op combine) future.Waiter {
			return mpicx.ReduceValue(c, "", func(a, b string) string { return fmt.Sprint(op(1, 1)) }, c.Size()-1)
		},
		"AllreduceFunc of strings": func(c *mpicx.Comm, op combine) future.Waiter {
			return mpicx.AllreduceFunc(c, []string{""}, make([]string, 1), func(a, b string) string { return fmt.Sprint(op(1, 1)) })
		},
	}
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
	for name, calls := range inOrder(programs) {
		for op, reduce := range inOrder(reductions) {
			t.Run(name+" in "+op, func(t *testing.T) {
				mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
					err := world.Try(ctx, func(ctx context.Context) error {
						f := reduce(world, func(a, b int) int {
							calls.call(world)
							return a + b
						})
						mpicx.Throw(f.Wait(ctx))
						return world.Barrier().Wait(ctx)
					})
					mpicx.Throw(isA[*mpicx.PropagatedError](err))
					require.ErrorContains(t, err, calls.want)
					if own, is := errors.AsType[*mpicx.MPIError](err); is && calls.want != "bad element" {
						require.Equal(t, strings.TrimSuffix(op, " of strings"), own.Op)
					}
					return nil
				})
			})
		}
	}
}

// deep calls fn with so many calls around it.
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
	nothing := func(context.Context) error { return errors.New("called") }
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		for op, err := range map[string]error{
			"Signal":      world.Signal(none, errors.New("some")),
			"SignalError": world.SignalError(none, 1),
			"Try":         world.Try(none, nothing),
			"TryAll":      world.TryAll(none, nothing),
			"Guard":       world.Guard(none, nothing),
			"Close":       world.Close(none),
			"Run":         mpicx.Run(none, func(context.Context, *mpicx.Comm) error { return nil }),
		} {
			mpicx.Throw(isMPIError(err, op, mpicx.ClassOther, "nil context"))
		}
		for op, err := range map[string]error{
			"Try":    world.Try(ctx, nil),
			"TryAll": world.TryAll(ctx, nil),
			"Guard":  world.Guard(ctx, nil),
			"Run":    mpicx.Run(ctx, nil),
		} {
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
	oneProcess(t)
	for name, program := range map[string]func(ctx context.Context, world *mpicx.Comm) error{
		"returned":  func(ctx context.Context, world *mpicx.Comm) error { return nil },
		"corrupted": func(ctx context.Context, world *mpicx.Comm) error { return errors.New("no luck") },
		"closed":    func(ctx context.Context, world *mpicx.Comm) error { return world.Close(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			if processes != nil {
				t.Skip("the job is over only with the process")
			}
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // for the test that fails
			defer cancel()
			const n = 3
			var worlds, dups [n]*mpicx.Comm
			var pending [n]future.Waiter
			_ = mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
				r := world.Rank()
				worlds[r], dups[r] = world, world.Dup().MustGet(ctx)
				pending[r] = mpicx.Recv(dups[r], []int{0}, (r+1)%n, 5)
				world.Barrier().MustWait(ctx)
				return program(ctx, world)
			}, mpicx.WithRanks(n))
			for r := range n {
				for _, c := range []*mpicx.Comm{worlds[r], dups[r]} {
					require.NoError(t, allSay(ctx, c, "is over"))
					require.NoError(t, scopesSay(ctx, c, "is over"))
				}
				err := pending[r].Wait(ctx)
				require.Error(t, err)
				if name == "returned" && mpicx.Backend != "ulfm" {
					require.NoError(t, isMPIError(err, "Recv", mpicx.ClassOther, fmt.Sprintf("rank %d has returned", (r+1)%n)))
				}
			}
			require.NoError(t, ctx.Err())
		})
	}
}
