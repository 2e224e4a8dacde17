package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
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
	each(t, func(ctx context.Context, c *mpicx.Comm, length int) error {
		n, me := c.Size(), c.Rank()
		give := func(r, i int) affine { return affine{uint32(2*r + 3), uint32(r*r + i + 1)} }
		upTo := func(ranks, first int) func(i int) affine {
			return func(i int) (acc affine) {
				for r := range ranks {
					if r == 0 {
						acc = give(0, first+i)
					} else {
						acc = compose(acc, give(r, first+i))
					}
				}
				return acc
			}
		}
		send := make([]affine, length)
		for i := range send {
			send[i] = give(me, i)
		}
		counts := make([]int, n)
		for i := range length {
			counts[i*7%n]++
		}
		first := 0
		for _, k := range counts[:me] {
			first += k
		}
		recv := func() []affine { return make([]affine, length) }
		all, scan, exscan, part := recv(), recv(), recv(), make([]affine, counts[me])
		mpicx.AllreduceFunc(c, send, all, compose).MustWait(ctx)
		mpicx.ScanFunc(c, send, scan, compose).MustWait(ctx)
		mpicx.ExscanFunc(c, send, exscan, compose).MustWait(ctx)
		mpicx.ReduceScatterFunc(c, send, part, counts, compose).MustWait(ctx)
		errs := []error{
			want("AllreduceFunc", all, upTo(n, 0)), want("ScanFunc", scan, upTo(me+1, 0)), want("ExscanFunc", exscan, upTo(me, 0)),
			want("ReduceScatterFunc", part, upTo(n, first)), want("send", send, func(i int) affine { return give(me, i) }),
		}
		for root := range n {
			one := recv()
			mpicx.ReduceFunc(c, send, one, compose, root).MustWait(ctx)
			ranks := 0
			if me == root {
				ranks = n
			}
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
		mpicx.Throw(want(fmt.Sprintf("%v on %T", op, *new(T)), recv, func(i int) T {
			acc := []T{value(0, i)}
			for r := 1; r < c.Size(); r++ {
				combine(element.Bytes(acc), element.Bytes(acc), element.Bytes([]T{value(r, i)}))
			}
			if c.Size() == 1 && (op == mpicx.LAnd || op == mpicx.LOr || op == mpicx.LXor) {
				element.Predefined[T](int(mpicx.LOr))(element.Bytes(acc), element.Bytes(acc), element.Bytes(acc))
			}
			return acc[0]
		}))
	}
	return nil
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Logical operations return 0 or 1 for the values of any number of ranks, one included.
func TestLogicalOfFew(t *testing.T) {
	each := func(ctx context.Context, c *mpicx.Comm, op mpicx.Op) error {
		n, me := c.Size(), c.Rank()
		send := []float64{4, 0}
		check := func(what string, ranks int, got []float64) error {
			one := truth(ranks > 0 && (op != mpicx.LXor || ranks%2 == 1))
			if want := []float64{one, 0}[:len(got)]; !slices.Equal(got, want) {
				return fmt.Errorf("%s(%v) at rank %d of %d: %v, expected %v", what, op, me, n, got, want)
			}
			return nil
		}
		recv := func() []float64 { return make([]float64, 2) }
		reduce, all, scan, exscan, inPlace, block := recv(), recv(), recv(), recv(), slices.Clone(send), []float64{9}
		mpicx.Reduce(c, send, reduce, op, n-1).MustWait(ctx)
		mpicx.Allreduce(c, send, all, op).MustWait(ctx)
		mpicx.Scan(c, send, scan, op).MustWait(ctx)
		mpicx.Exscan(c, send, exscan, op).MustWait(ctx)
		mpicx.Allreduce(c, inPlace, inPlace, op).MustWait(ctx)
		mpicx.ReduceScatterBlock(c, slices.Repeat([]float64{4}, n), block, op).MustWait(ctx)
		atRoot := 0
		if me == n-1 {
			atRoot = n
		}
		errs := []error{
			check("Reduce", atRoot, reduce), check("Allreduce", n, all), check("Scan", me+1, scan), check("Exscan", me, exscan),
			check("in place", n, inPlace), check("ReduceScatterBlock", n, block),
		}
		if n > 1 {
			color, remote := min(me, 1), []int{1, 0}
			ic := mpicx.CreateIntercomm(c.Split(color, 0).MustGet(ctx), 0, c, remote[color], 5).MustGet(ctx)
			inter := recv()
			mpicx.InterAllreduce(ic, send, inter, op).MustWait(ctx)
			errs = append(errs, check("InterAllreduce", []int{n - 1, 1}[color], inter))
		}
		return errors.Join(errs...)
	}
	for _, n := range fitting(1, 2, 3) {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			return errors.Join(each(ctx, c, mpicx.LAnd), each(ctx, c, mpicx.LOr), each(ctx, c, mpicx.LXor))
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
			integers[int](ctx, c, length), integers[int8](ctx, c, length), integers[int16](ctx, c, length),
			integers[int32](ctx, c, length), integers[int64](ctx, c, length),
			integers[uint](ctx, c, length), integers[uint8](ctx, c, length), integers[uint16](ctx, c, length),
			integers[uint32](ctx, c, length), integers[uint64](ctx, c, length),
			reduceAll(ctx, c, length, func(r, i int) float32 { return float32(small(r, i)) }),
			reduceAll(ctx, c, length, small),
			reduceAll(ctx, c, length, func(r, i int) celsius { return celsius(small(r, i)) }),
			reduceAll(ctx, c, length, func(r, i int) flag { return (r+i)%3 == 0 }),
			reduceAll(ctx, c, length, func(r, i int) complex128 { return complex(small(r, i), small(i, r)) }),
			reduceAll(ctx, c, length, func(r, i int) complex64 { return complex64(complex(small(r, i), small(i, r))) }),
		)
	})
}

func integers[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](ctx context.Context, c *mpicx.Comm, length int) error {
	return reduceAll(ctx, c, length, func(r, i int) T { return T(r*37+i*11) % 101 })
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

// A panic in a user's reduction comes out of Wait at its rank, with its stack.
func TestPanicInReduction(t *testing.T) {
	mpicxtest.Run(t, 4, func(ctx context.Context, c *mpicx.Comm) error {
		var caught any
		err := c.TryAll(ctx, func(ctx context.Context) (err error) {
			defer func() {
				if caught = recover(); caught != nil {
					err = errors.New("a reduction panicked")
				}
			}()
			return mpicx.ReduceFunc(c, []int{c.Rank()}, []int{0}, func(a, b int) int {
				if a == 2 { // ranks 2 and 3 are combined at rank 2
					panic("bad numbers")
				}
				return a + b
			}, 0).Wait(ctx)
		})
		if (caught != nil) != (c.Rank() == 2) {
			return fmt.Errorf("panic %v", caught)
		}
		if p, is := caught.(*future.Panicked); caught != nil && (!is || p.Value != "bad numbers" || !strings.Contains(string(p.Stack), "TestPanicInReduction")) {
			return fmt.Errorf("panic %v", caught)
		}
		mpicx.Throw(propagated(err, 0))
		return exchange(ctx, c, 0)
	})
}

// A Goexit in one ends its operation, and no peer that happens to run it, also if that is bound to
// a thread.
func TestGoexitInReduction(t *testing.T) {
	for _, bound := range []bool{false, true} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			mpicxtest.Run(t, 4, func(ctx context.Context, c *mpicx.Comm) error {
				if bound {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
				}
				err := c.TryAll(ctx, func(ctx context.Context) error {
					err := mpicx.ReduceFunc(c, []int{c.Rank()}, []int{0}, func(a, b int) int {
						if a == 2 {
							runtime.Goexit()
						}
						return a + b
					}, 0).Wait(ctx)
					if errors.Is(err, mpicx.ErrGoexit) != (c.Rank() == 2) {
						return fmt.Errorf("got %w", err)
					}
					return err
				})
				mpicx.Throw(propagated(err, 0))
				return exchange(ctx, c, 0)
			})
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
		for {
			err := c.TryAll(ctx, func(ctx context.Context) error {
				if told == 0 {
					mpicx.ReduceScatterBlockFunc(c, []int{1, 2}, []int{0}, func(a, b int) int {
						_ = c.Signal(ctx, errors.New("bad numbers"))
						return a + b
					}).MustWait(ctx)
				}
				return exchange(ctx, c, 0)
			})
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
			sum, err := mpicx.AllreduceValue(c, 1, func(a, b int) int {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				runtime.Gosched()
				return a + b
			}).Get(ctx)
			if err != nil || sum != c.Size() {
				return fmt.Errorf("%d %w", sum, err)
			}
		}
		return nil
	})
}

// P4: a rank is told of an error only when its buffers are free. A reduction's function may be at
// work then, on the goroutine of a peer whose message has ended the last receive, while all ranks
// join the round.
func TestErrorsWaitForReductions(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for name, n := range map[string]int{"short": 1, "long": 4096} {
			t.Run(name, func(t *testing.T) { errorsWaitForReductions(t, backend, n) })
		}
	})
}

func errorsWaitForReductions(t *testing.T, backend mpicx.Option, n int) {
	const code, mine = 7, -1
	synctest.Test(t, func(t *testing.T) {
		posted, atWork, proceed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		block := func(a, b int64) int64 {
			select {
			case <-atWork:
			default:
				close(atWork)
				<-proceed
			}
			return a + b
		}
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			send, recv := make([]int64, n), make([]int64, n)
			told := make(chan error, 1)
			if world.Rank() == 1 {
				<-posted
				go func() { told <- mpicx.Recv(world, make([]int64, 1), 0, 0).Wait(ctx) }()
				_ = mpicx.ReduceFunc(world, send, recv, block, 0)
				return propagated(<-told, code)
			}
			reduced := mpicx.ReduceFunc(world, send, recv, block, 0)
			close(posted)
			<-atWork
			go func() { told <- world.SignalError(ctx, code) }()
			settle()
			mpicx.Throw(nothingYet(told))
			close(proceed)
			mpicx.Throw(propagated(<-told, code))
			recv[0] = mine
			settle()
			if recv[0] != mine {
				return errors.New("the buffer was written afterwards")
			}
			return reduced.Wait(ctx)
		}, mpicx.WithRanks(2), backend))
	})
}

// A revoke is told when the function has returned, too.
func TestRevokeWaitsForReductions(t *testing.T) {
	oneProcess(t)
	synctest.Test(t, func(t *testing.T) {
		posted, atWork, proceed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		block := func(a, b int64) int64 {
			close(atWork)
			<-proceed
			return a + b
		}
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			c := dup(ctx, world)
			c.SetErrhandler(mpicx.ErrorsReturn)
			recv := make([]int64, 1)
			told := make(chan error, 1)
			if world.Rank() == 1 {
				<-posted
				go func() { <-atWork; told <- c.Revoke(ctx) }()
				_ = mpicx.ReduceFunc(c, []int64{1}, recv, block, 0)
				return <-told
			}
			mpicx.ReduceFunc(c, []int64{1}, recv, block, 0)
			close(posted)
			go func() { told <- mpicx.Recv(c, make([]int64, 1), 1, 0).Wait(ctx) }()
			settle()
			mpicx.Throw(nothingYet(told))
			close(proceed)
			return expect(<-told, mpicx.ErrRevoked)
		}, mpicx.WithRanks(2), hook.Backend[mpicx.Option]("ulfm")))
	})
}

// nothingYet returns an error if one has been told, while a function of a reduction still uses the buffer.
func nothingYet(told <-chan error) error {
	select {
	case err := <-told:
		return fmt.Errorf("told while the function uses the buffer: %w", err)
	default:
		return nil
	}
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
