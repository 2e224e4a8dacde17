package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// begun has every operation that returns a future, by its name, begun on c.
func begun(c *mpicx.Comm) map[string]future.Waiter {
	one := []int{1}
	join := func(a, b string) string { return a + b }
	all := map[string]future.Waiter{
		"Send":      mpicx.Send(c, one, 0, 0),
		"Ssend":     mpicx.Ssend(c, one, 0, 0),
		"Recv":      mpicx.Recv(c, one, 0, 0),
		"RecvSlice": mpicx.RecvSlice[int](c, 0, 0),
		"Probe":     mpicx.Probe[int](c, 0, 0),
		"SendValue": mpicx.SendValue(c, "one", 0, 0),
		"RecvValue": mpicx.RecvValue[string](c, 0, 0),
		// With pointers in the elements.
		"AllreduceFunc of strings":  mpicx.AllreduceFunc(c, []string{"one"}, make([]string, 1), join),
		"AllreduceValue of strings": mpicx.AllreduceValue(c, "one", join),
		"ReduceValue of strings":    mpicx.ReduceValue(c, "one", join, 0),
		"ReduceFunc of strings":     mpicx.ReduceFunc(c, []string{"one"}, make([]string, 1), join, 0),
	}
	for _, call := range callees(4) {
		if f, ok := call.begin(place{Comm: c}).(future.Waiter); ok {
			name, _, _ := strings.Cut(call.text, "(")
			all[name] = f
		}
	}
	return all
}

// is says whether err is an *MPIError of op and class that says what.
func isMPIError(err error, op string, class mpicx.Class, what string) error {
	e, is := err.(*mpicx.MPIError)
	if !is || e.Op != op || e.Class != class || !strings.Contains(e.Text, what) {
		return fmt.Errorf("got %v (%T), expected an *MPIError of %s, class %v: %s", err, err, op, class, what)
	}
	return nil
}

// A refusal is what ends with an *MPIError; without a text it may end well, too.
type refusal struct {
	f     waiter
	op    string
	class mpicx.Class
	text  string
}

// refused waits for all, and says which of them does not end so.
func refused(ctx context.Context, all ...refusal) error {
	for i, r := range all {
		if err := r.f.Wait(ctx); err != nil || r.text != "" {
			mpicx.Throw(explain(isMPIError(err, r.op, r.class, r.text), "call %d", i))
		}
	}
	return nil
}

// scopesSay checks that scopes of c and SignalError end with an error of their names that says what.
func scopesSay(ctx context.Context, c *mpicx.Comm, what string) error {
	return errors.Join(isMPIError(c.SignalError(ctx, 1), "SignalError", mpicx.ClassComm, what),
		isMPIError(c.Try(ctx, succeeds), "Try", mpicx.ClassComm, what),
		isMPIError(c.TryAll(ctx, succeeds), "TryAll", mpicx.ClassComm, what),
		isMPIError(c.Guard(ctx, succeeds), "Guard", mpicx.ClassComm, what))
}

// allSay checks that all else that is done with c does.
func allSay(ctx context.Context, c *mpicx.Comm, what string) error {
	_, diagnosed := c.Diagnose(ctx)
	for op, err := range map[string]error{
		"Signal": c.Signal(ctx, errors.New("some")), "Err": c.Err(), "Diagnose": diagnosed,
		"Agree": c.Agree(1).Wait(ctx), "Shrink": c.Shrink().Wait(ctx), "Close": c.Close(ctx),
	} {
		mpicx.Throw(isMPIError(err, op, mpicx.ClassComm, what))
	}
	for name, f := range begun(c) {
		op, _, _ := strings.Cut(name, " ")
		mpicx.Throw(isMPIError(f.Wait(ctx), op, mpicx.ClassComm, what))
		if done, err := f.Test(); !done || isMPIError(err, op, mpicx.ClassComm, what) != nil {
			return fmt.Errorf("%s: Test says %v, %v", op, done, err)
		}
	}
	return nil
}

// Operations on the nil communicator that Split gives with Undefined end with an error that says so
// (F1); what returns no error panics with it.
func TestNilCommunicator(t *testing.T) {
	oneProcess(t)
	const what = "nil communicator (Split returns it for Undefined)"
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		none := world.Split(mpicx.Undefined, 0).MustGet(ctx)
		mpicx.Throw(errors.Join(allSay(ctx, none, what), scopesSay(ctx, none, what)))
		mpicx.Throw(isMPIError(none.Revoke(ctx), "Revoke", mpicx.ClassComm, what))
		for name, call := range map[string]func(){
			"Rank": func() { none.Rank() }, "Size": func() { none.Size() }, "Group": func() { none.Group() },
			"Revoked": func() { none.Revoked() }, "Failed": func() { none.Failed() }, "AckFailed": func() { none.AckFailed(1) },
			"Blocked": func() { none.Blocked() }, "SetErrhandler": func() { none.SetErrhandler(mpicx.ErrorsReturn) },
		} {
			require.PanicsWithValue(t, "mpicx: "+name+": "+what, call)
		}
		require.Equal(t, what, none.String())
		return world.Barrier().Wait(ctx)
	})
}

func recovered(call func()) (v any) {
	defer func() { v = recover() }()
	call()
	return nil
}

// Operations on a closed communicator end with their own errors, not with one of "use". What was
// done before keeps its result (F3).
func TestClosedCommunicator(t *testing.T) {
	oneProcess(t)
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		dup := world.Dup().MustGet(ctx)
		sent := mpicx.Send(dup, []int{7}, dup.Rank()^1, 0)
		got := mpicx.RecvSlice[int](dup, dup.Rank()^1, 0)
		mpicx.Throw(errors.Join(got.Wait(ctx), dup.Close(ctx)))
		mpicx.Throw(allSay(ctx, dup, "world.dup1 is closed"))
		mpicx.Throw(isMPIError(dup.Close(ctx), "Close", mpicx.ClassComm, "world.dup1 is closed already"))
		sent.MustWait(ctx)
		require.Equal(t, []int{7}, got.MustGet(ctx))
		return world.Barrier().Wait(ctx)
	})
}

// Counts whose sum overflows, to the length of the buffer even, or that are larger than
// memory, are an error that names the first that is too large.
func TestHugeCounts(t *testing.T) {
	oneProcess(t)
	const most = math.MaxInt
	overflows := fmt.Sprintf("count %d of rank 1, expected counts whose sum, %d so far", most, most)
	mpicxtest.Run(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		rank, buf, one, good := world.Rank(), make([]int, 4), []int{1}, []int{1, 1, 1, 1}
		for _, test := range []struct {
			counts []int
			class  mpicx.Class
			want   string
		}{
			{[]int{most, most, 2, 4}, mpicx.ClassCount, overflows}, // 4 in two's complement
			{[]int{most, most, 1, 1}, mpicx.ClassCount, overflows}, // 0
			{[]int{most, most, most, most}, mpicx.ClassCount, overflows},
			{[]int{1, 0, most, 0}, mpicx.ClassCount, fmt.Sprintf("count %d of rank 2", most)},
			{[]int{0, 0, 0, most}, mpicx.ClassBuffer, fmt.Sprint("expected ", most)},
			{[]int{most / 2, 0, 0, 1}, mpicx.ClassBuffer, fmt.Sprint("expected ", most/2+1)},
			{[]int{-1, most, 5, 0}, mpicx.ClassCount, "count -1 of rank 0, expected 0 or more"},
			{[]int{math.MinInt, math.MinInt, 4, 0}, mpicx.ClassCount, fmt.Sprintf("count %d of rank 0, expected 0 or more", math.MinInt)},
		} {
			for name, f := range inOrder(map[string]future.Waiter{
				"Allgatherv":        mpicx.Allgatherv(world, one, buf, test.counts),
				"Alltoallv":         mpicx.Alltoallv(world, buf, test.counts, make([]int, 4), good),
				"Alltoallv to":      mpicx.Alltoallv(world, buf, good, make([]int, 4), test.counts),
				"ReduceScatter":     mpicx.ReduceScatter(world, buf, one, test.counts, mpicx.Sum),
				"ReduceScatterFunc": mpicx.ReduceScatterFunc(world, buf, one, test.counts, func(a, b int) int { return a }),
				"Gatherv":           mpicx.Gatherv(world, one, buf, test.counts, rank),
				"Scatterv":          mpicx.Scatterv(world, buf, test.counts, one, rank),
			}) {
				op, _, _ := strings.Cut(name, " ")
				mpicx.Throw(explain(isMPIError(f.Wait(ctx), op, test.class, test.want), "%v", test.counts))
			}
		}
		return nil
	})
}

// A nil function is an argument like others: the error names it (F1).
func TestNilFunction(t *testing.T) {
	oneProcess(t)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		const text = "nil function, expected one that combines two elements of type "
		for name, reduce := range reductions {
			if !strings.HasSuffix(name, " of strings") { // whose functions call the other
				mpicx.Throw(isMPIError(reduce(world, nil).Wait(ctx), name, mpicx.ClassOp, text+"int"))
			}
		}
		return refused(ctx,
			refusal{mpicx.AllreduceValue[string](world, "", nil), "AllreduceValue", mpicx.ClassOp, text + "string"},
			refusal{mpicx.AllreduceFunc[string](world, []string{""}, make([]string, 1), nil), "AllreduceFunc", mpicx.ClassOp, text + "string"})
	})
}

// A Wait that ctx ends says what it was for; errors.Is finds the cause, and the Wait
// that follows has the result (F2).
func TestDeadlineSaysWhat(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	cause := errors.New("out of patience")
	big := make([]byte, 1<<20)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		peer := 1 - world.Rank()
		if world.Rank() == 0 { // does its part an hour late
			time.Sleep(time.Hour)
			err := future.WaitAll(ctx, mpicx.Send(world, []int{1}, peer, 7), mpicx.Send(world, []int{1}, peer, 8),
				mpicx.SendValue(world, "one", peer, 9), mpicx.Recv(world, big, peer, 5), mpicx.Recv(world, []int{0}, peer, 6),
				mpicx.Send(world, []int{1}, peer, 10),
				world.Barrier(), mpicx.AllreduceFunc(world, []int{1}, []int{0}, add), mpicx.AllgatherValue(world, "one"),
				world.Dup(), world.Split(0, 0))
			time.Sleep(time.Hour)
			return errors.Join(err, mpicx.Send(world, []int{1}, peer, 11).Wait(ctx))
		}
		what := []string{
			"Recv from rank 0, tag 7 on world", "Probe from rank 0, tag 8 on world", "RecvSlice from any rank, tag 8 on world",
			"RecvValue from rank 0, tag 9 on world", "Send to rank 0, tag 5 on world", "Ssend to rank 0, tag 6 on world",
			"Recv from any rank, any tag on world", "Barrier waits for rank 0 on world",
			"AllreduceFunc, step 2: receive from rank 0 on world", "AllgatherValue, step 3: receive from rank 0 on world",
			"Split on world", "Dup on world",
		}
		all := []future.Waiter{
			mpicx.Recv(world, []int{0}, peer, 7), mpicx.Probe[int](world, peer, 8), mpicx.RecvSlice[int](world, mpicx.AnySource, 8),
			mpicx.RecvValue[string](world, peer, 9), mpicx.Send(world, big, peer, 5), mpicx.Ssend(world, []int{0}, peer, 6),
			mpicx.Recv(world, []int{0}, mpicx.AnySource, mpicx.AnyTag), world.Barrier(),
			mpicx.AllreduceFunc(world, []int{1}, []int{0}, add), mpicx.AllgatherValue(world, "one"),
		}
		dup, split := world.Dup(), world.Split(0, 0)
		if all = append(all, split); mpicx.Backend == "ulfm" { // else Dup waits for nobody
			all, what[10], what[11] = append(all, dup), what[10]+", where Dup waits for the decision", what[11]+", where Dup waits for the decision"
		}
		gone, cancel := context.WithCancelCause(ctx)
		cancel(cause)
		for i, f := range all {
			for range 2 { // not only the first time
				mpicx.Throw(lateFor(ctx, t, f, what[i]))
			}
			err := f.Wait(gone)
			require.EqualError(t, err, "mpicx: "+what[i]+": out of patience")
			require.ErrorIs(t, err, cause)
		}
		i, err := future.WaitAny(gone, all...)
		require.Equal(t, -1, i)
		require.EqualError(t, err, "mpicx: Recv from rank 0, tag 7 or Probe from rank 0, tag 8 or RecvSlice from any rank, tag 8 or "+
			"RecvValue from rank 0, tag 9 on world or "+fmt.Sprint(len(all)-4)+" more: out of patience")
		require.ErrorIs(t, err, cause)
		require.EqualError(t, future.WaitAll(gone, all...), "mpicx: Recv from rank 0, tag 7 on world: out of patience")
		mpicx.Throw(future.WaitAll(ctx, all...))
		f := mpicx.Recv(world, []int{0}, peer, 11) // a Guard changes nothing
		return first(world.Guard(ctx, func(ctx context.Context) error { return lateFor(ctx, t, f, "Recv from rank 0, tag 11 on world") }), f.Wait(ctx))
	})
}

// lateFor waits for too short a time.
func lateFor(ctx context.Context, t *testing.T, f future.Waiter, what string) error {
	late, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := f.Wait(late)
	require.EqualError(t, err, "mpicx: "+what+": context deadline exceeded")
	return expect(err, context.DeadlineExceeded)
}

// While an error is being resolved, that is what a Wait waits for, and it says for whom.
func TestDeadlineInResolution(t *testing.T) {
	oneProcess(t)
	fakeTime(t)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			time.Sleep(time.Hour)
			return propagated(world.Barrier().Wait(ctx), 5)
		}
		late, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, world.SignalError(late, 5), context.DeadlineExceeded)
		err := mpicx.Send(world, []int{1}, 1, 0).Wait(late)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Regexp(t, "^mpicx: Send on world, where ", err)
		return propagated(world.Barrier().Wait(ctx), 5)
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
	asBoth(t, 4, func(ctx context.Context, world *mpicx.Comm) error {
		c := world.Split(world.Rank()/3, 0).MustGet(ctx)
		for name, call := range inOrder(badCalls(world.Group())) {
			if c.Size() == 3 {
				p, err := withHalo(ctx, c)
				if err != nil {
					return err
				}
				err = call(p, c.Rank() == 1).Wait(ctx)
				if e, ok := err.(*mpicx.MPIError); !ok || c.Rank() != 1 && !strings.Contains(e.Text, "rank 1") {
					return fmt.Errorf("%s at rank %d: %w", name, c.Rank(), err)
				}
			}
			world.Barrier().MustWait(ctx)
		}
		return nil
	})
}
