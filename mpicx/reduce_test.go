package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/element"
	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// affine is x -> A x + B: composing them is associative but not commutative.
type affine struct{ A, B uint32 }

func compose(f, g affine) affine { return affine{f.A * g.A, f.A*g.B + f.B} }

// With a function that does not commute, everything is combined in the order of ranks.
func TestOrderOfReductions(t *testing.T) {
	give := func(r, i int) affine { return affine{uint32(2*r + 3), uint32(r*r + i + 1)} }
	upTo := func(ranks, first int) func(i int) affine {
		return func(i int) (acc affine) {
			for r := range ranks {
				if acc = compose(acc, give(r, first+i)); r == 0 {
					acc = give(r, first+i)
				}
			}
			return acc
		}
	}
	each(t, func(ctx context.Context, c *mpicx.Comm, length int) error {
		n, me := c.Size(), c.Rank()
		send, counts := make([]affine, length), make([]int, n)
		for i := range send {
			send[i] = give(me, i)
			counts[i*7%n]++
		}
		recv := func() []affine { return make([]affine, length) }
		all, scan, exscan, part := recv(), recv(), recv(), make([]affine, counts[me])
		mpicx.AllreduceFunc(c, send, all, compose).MustWait(ctx)
		mpicx.ScanFunc(c, send, scan, compose).MustWait(ctx)
		mpicx.ExscanFunc(c, send, exscan, compose).MustWait(ctx)
		mpicx.ReduceScatterFunc(c, send, part, counts, compose).MustWait(ctx)
		errs := []error{
			want("AllreduceFunc", all, upTo(n, 0)), want("ScanFunc", scan, upTo(me+1, 0)), want("ExscanFunc", exscan, upTo(me, 0)),
			want("ReduceScatterFunc", part, upTo(n, total(counts[:me]))), want("send", send, func(i int) affine { return give(me, i) }),
		}
		for root := range n {
			one, ranks := recv(), 0
			if me == root {
				ranks = n
			}
			mpicx.ReduceFunc(c, send, one, compose, root).MustWait(ctx)
			errs = append(errs, want(fmt.Sprint("ReduceFunc to ", root), one, upTo(ranks, 0)))
		}
		return errors.Join(errs...)
	})
}

// reduceAll checks every Op that is defined on T against a sequential reduction.
func reduceAll[T mpicx.Scalar](ctx context.Context, c *mpicx.Comm, length int, value func(r, i int) T) error {
	for op := mpicx.Sum; op <= mpicx.BXor+1; op++ {
		send, recv := make([]T, length), make([]T, length)
		for i := range send {
			send[i] = value(c.Rank(), i)
		}
		err := mpicx.Allreduce(c, send, recv, op).Wait(ctx)
		combine := element.Predefined[T](int(op))
		if combine == nil {
			mpicx.Throw(isMPIError(err, "Allreduce", mpicx.ClassOp, fmt.Sprintf("%v is not defined on %T", op, *new(T))))
			continue
		}
		mpicx.Throw(err)
		if c.Size() == 1 && slices.Contains([]mpicx.Op{mpicx.LAnd, mpicx.LOr, mpicx.LXor}, op) {
			continue // TestLogicalOfFew has these
		}
		mpicx.Throw(want(fmt.Sprintf("%v on %T", op, *new(T)), recv, func(i int) T {
			acc := []T{value(0, i)}
			for r := 1; r < c.Size(); r++ {
				combine(element.Bytes(acc), element.Bytes(acc), element.Bytes([]T{value(r, i)}))
			}
			return acc[0]
		}))
	}
	return nil
}

// Logical operations return 0 or 1 for the values of any number of ranks, one included.
func TestLogicalOfFew(t *testing.T) {
	for n, op := range product(fitting(1, 2, 3), []mpicx.Op{mpicx.LAnd, mpicx.LOr, mpicx.LXor}) {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			me, send := c.Rank(), []float64{4, 0}
			check := func(what string, ranks int, got []float64) error {
				want := []float64{0, 0}[:len(got)]
				if ranks > 0 && (op != mpicx.LXor || ranks%2 == 1) {
					want[0] = 1
				}
				return same(fmt.Sprint(what, " by ", op), got, want)
			}
			recv := func() []float64 { return make([]float64, 2) }
			reduce, all, scan, exscan, inPlace, block := recv(), recv(), recv(), recv(), slices.Clone(send), []float64{9}
			mpicx.Reduce(c, send, reduce, op, n-1).MustWait(ctx)
			mpicx.Allreduce(c, send, all, op).MustWait(ctx)
			mpicx.Scan(c, send, scan, op).MustWait(ctx)
			mpicx.Exscan(c, send, exscan, op).MustWait(ctx)
			mpicx.Allreduce(c, inPlace, inPlace, op).MustWait(ctx)
			mpicx.ReduceScatterBlock(c, slices.Repeat([]float64{4}, n), block, op).MustWait(ctx)
			errs := []error{
				check("Reduce", map[bool]int{true: n}[me == n-1], reduce), check("Allreduce", n, all), check("Scan", me+1, scan), check("Exscan", me, exscan),
				check("in place", n, inPlace), check("ReduceScatterBlock", n, block),
			}
			if n > 1 {
				local, bridge, remoteLeader := beside(ctx, c, 1)
				ic, inter := mpicx.CreateIntercomm(local, 0, bridge, remoteLeader, 5).MustGet(ctx), recv()
				mpicx.InterAllreduce(ic, send, inter, op).MustWait(ctx)
				errs = append(errs, check("InterAllreduce", ic.RemoteSize(), inter))
			}
			return errors.Join(errs...)
		})
	}
}

type celsius float64

type flag bool

// Internal/element tests what each Op yields.
func TestOpsAndTypes(t *testing.T) {
	each(t, func(ctx context.Context, c *mpicx.Comm, length int) error {
		length = min(length, 20)
		small := func(r, i int) float64 { return float64((r*7+i)%3) - 1 } // exact, in whatever order
		return errors.Join(
			reduceAll(ctx, c, length, func(r, i int) int { return (r*37 + i*11) % 101 }),
			reduceAll(ctx, c, length, func(r, i int) int8 { return int8((r*37 + i*11) % 101) }),
			reduceAll(ctx, c, length, func(r, i int) uint16 { return uint16(r*37+i*11) % 101 }),
			reduceAll(ctx, c, length, func(r, i int) float32 { return float32(small(r, i)) }),
			reduceAll(ctx, c, length, func(r, i int) celsius { return celsius(small(r, i)) }),
			reduceAll(ctx, c, length, func(r, i int) flag { return (r+i)%3 == 0 }),
			reduceAll(ctx, c, length, func(r, i int) complex128 { return complex(small(r, i), small(i, r)) }),
		)
	})
}

// Sums of floating-point numbers are bit by bit the same at all ranks, time after time.
func TestSumsAreReproducible(t *testing.T) {
	for _, n := range fitting(sizes...) {
		all := run(t, n, func(ctx context.Context, c *mpicx.Comm) (sums [5][]float64, _ error) {
			rnd := rand.New(rand.NewPCG(1, uint64(c.Rank())))
			send := make([]float64, 40)
			for i := range send {
				send[i] = (rnd.Float64() - 0.5) * math.Pow(10, float64(rnd.IntN(30)-15))
			}
			for i := range sums {
				sums[i] = make([]float64, len(send))
				mpicx.Allreduce(c, send, sums[i], mpicx.Sum).MustWait(ctx)
			}
			return sums, nil
		})
		for r, sums := range all {
			for i, sum := range sums {
				require.Equal(t, element.Bytes(all[0][0]), element.Bytes(sum), "sum %d of rank %d of %d", i, r, n)
			}
		}
	}
}

// A panic in a user's reduction comes out of Wait at its rank, with its stack. A Goexit in one ends
// its operation, and no peer that happens to run it. Either may be on a goroutine that is bound to
// a thread.
func TestReductionThatUnwinds(t *testing.T) {
	for panics, bound := range product([]bool{false, true}, []bool{false, true}) {
		unwind := func(a, b int) int {
			if a == 2 && panics { // ranks 2 and 3 are combined at rank 2
				panic("bad numbers")
			} else if a == 2 {
				runtime.Goexit()
			}
			return a + b
		}
		reduce := func(ctx context.Context, c *mpicx.Comm) (err error) {
			defer func() {
				p, is := recover().(*future.Panicked)
				require.Equal(t, panics && c.Rank() == 2, is)
				if is {
					require.Equal(t, "bad numbers", p.Value)
					require.Contains(t, string(p.Stack), "TestReductionThatUnwinds")
					err = errors.New("a reduction panicked")
				}
			}()
			err = mpicx.ReduceFunc(c, []int{c.Rank()}, []int{0}, unwind, 0).Wait(ctx)
			require.Equal(t, !panics && c.Rank() == 2, errors.Is(err, mpicx.ErrGoexit), "%v", err)
			return err
		}
		mpicxtest.Run(t, 4, func(ctx context.Context, c *mpicx.Comm) error {
			if bound {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			err := c.TryAll(ctx, func(ctx context.Context) error { return reduce(ctx, c) })
			return first(propagated(err, 0), exchange(ctx, c, 0))
		})
	}
}

// Signal in one ends its operation, also if the error is resolved at once. Otherwise the program
// would not learn of an error that all ranks have.
func TestSignalInReduction(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, c *mpicx.Comm) error {
		if c.Rank() == 0 {
			time.Sleep(time.Second) // rank 1 waits by then
		}
		told := 0
		attempt := func(ctx context.Context) error {
			if told == 0 {
				mpicx.ReduceScatterBlockFunc(c, []int{1, 2}, []int{0}, func(a, b int) int {
					_ = c.Signal(ctx, errors.New("bad numbers"))
					return a + b
				}).MustWait(ctx)
			}
			return exchange(ctx, c, 0)
		}
		for {
			err := c.TryAll(ctx, attempt)
			p, is := err.(*mpicx.PropagatedError)
			if !is {
				require.Equal(t, 2, told)
				return err
			}
			told += len(p.Failures)
		}
	})
}

// The function may run on a goroutine that is bound to a thread, and may be bound itself.
func TestReductionOnAThread(t *testing.T) {
	mpicxtest.Run(t, 3, func(ctx context.Context, c *mpicx.Comm) error {
		if c.Rank() != 1 {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
		}
		for range 50 {
			sum := mpicx.AllreduceValue(c, 1, func(a, b int) int {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				runtime.Gosched()
				return a + b
			})
			require.Equal(t, 3, sum.MustGet(ctx))
		}
		return nil
	})
}

// P4: a rank is told of an error or a revoke only when its buffers are free. A reduction's function
// may be at work then, on the goroutine of a peer whose message has ended the last receive.
func TestErrorsWaitForReductions(t *testing.T) {
	oneProcess(t)
	told := func(err error) error { return propagated(err, 7) }
	signal := func(ctx context.Context, c *mpicx.Comm) error { return told(c.SignalError(ctx, 7)) }
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for by, n := range product([]int{0, 1}, []int{1, 4096}) {
			errorsWaitForReductions(t, backend, n, by, signal, told)
		}
	})
	revoked := func(err error) error { return expect(err, mpicx.ErrRevoked) }
	revoke := func(ctx context.Context, c *mpicx.Comm) error { return c.Revoke(ctx) }
	errorsWaitForReductions(t, hook.Backend[mpicx.Option]("ulfm"), 1, 1, revoke, revoked)
}

// errorsWaitForReductions has one of two ranks raise while a function works on rank 0's buffer. The
// other one checks what it is told.
func errorsWaitForReductions(t *testing.T, backend mpicx.Option, n, by int, raise func(context.Context, *mpicx.Comm) error, check func(error) error) {
	synctest.Test(t, func(t *testing.T) {
		posted, atWork, proceed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		begin := sync.OnceFunc(func() { close(atWork); <-proceed })
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			c := dup(ctx, world)
			c.SetErrhandler(mpicx.ErrorsReturn)
			send, recv, told := make([]int64, n), make([]int64, n), make(chan error, 1)
			if c.Rank() == 1 {
				<-posted
			}
			go func() {
				if c.Rank() == by {
					<-atWork
					told <- raise(ctx, c)
				} else {
					told <- check(mpicx.Recv(c, make([]int64, 1), by, 0).Wait(ctx))
				}
			}()
			mpicx.ReduceFunc(c, send, recv, func(a, b int64) int64 { begin(); return a + b }, 0)
			if c.Rank() == 1 {
				return <-told
			}
			close(posted)
			<-atWork
			settle()
			require.Empty(t, told, "the function uses the buffer")
			close(proceed)
			mpicx.Throw(<-told)
			recv[0] = -1
			settle()
			require.EqualValues(t, -1, recv[0], "the buffer was written afterwards")
			return nil
		}, mpicx.WithRanks(2), backend))
	})
}

// Texts, which have pointers, are combined in the order of ranks.
func TestOrderOfTexts(t *testing.T) {
	oneProcess(t)
	for _, n := range []int{1, 2, 3, 5, 8} {
		runBoth(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			words, text, all := make([]string, 4), make([]string, 4), make([]string, 4)
			for i := range words {
				words[i] = fmt.Sprint(c.Rank(), ".", i, " ")
				for r := range n {
					all[i] += fmt.Sprint(r, ".", i, " ")
				}
			}
			mpicx.AllreduceFunc(c, words, text, func(a, b string) string { return a + b }).MustWait(ctx)
			return same("texts", text, all)
		})
	}
}
