package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// Pointers to values are sent, also of types whose encoder has a pointer receiver.
func TestValuesBehindPointers(t *testing.T) {
	type both struct{ A, None *big.Int }
	add := func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
	for _, n := range fitting(1, 2, 3, 5) {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			x := big.NewInt(-5)
			return errors.Join(
				sameValues(ctx, c, x), sameValues(ctx, c, *x), sameValues(ctx, c, &x), sameValues(ctx, c, big.NewRat(1, 3)),
				sameValues(ctx, c, both{A: x}), sameValues(ctx, c, []*big.Int{x, x}),
				sameValues[error](ctx, c, nil), sameValues[any](ctx, c, 1.5),
				reduceValues(ctx, c, func(r int) *big.Int { return big.NewInt(int64(r * r)) }, add),
			)
		})
	}
}

// sameValues is reduceValues where all ranks have the same one.
func sameValues[T any](ctx context.Context, c *mpicx.Comm, v T) error {
	return reduceValues(ctx, c, func(int) T { return v }, func(a, _ T) T { return a })
}

// pointed has an encoder that needs a pointer which is not nil.
type pointed struct{ n byte }

func (p *pointed) GobEncode() ([]byte, error) { return []byte{p.n}, nil }
func (p *pointed) GobDecode(b []byte) error   { p.n = b[0]; return nil }

// What cannot be encoded is an error at the sender.
func TestNilValues(t *testing.T) {
	mpicxtest.Run(t, 2, func(ctx context.Context, c *mpicx.Comm) error {
		first := func(a, _ *pointed) *pointed { return a }
		var inner *int
		for what, f := range inOrder(map[string]func() future.Waiter{
			"SendValue":                func() future.Waiter { return mpicx.SendValue[*int](c, nil, 1, 1) },
			"SendValue of an encoder":  func() future.Waiter { return mpicx.SendValue[*pointed](c, nil, 1, 1) },
			"SendValue of an inner":    func() future.Waiter { return mpicx.SendValue(c, &inner, 1, 1) },
			"SendValue of an element":  func() future.Waiter { return mpicx.SendValue(c, []*pointed{{1}, nil}, 1, 1) },
			"SendValue in a map":       func() future.Waiter { return mpicx.SendValue(c, map[int]*pointed{1: nil}, 1, 1) },
			"SendValue of a big float": func() future.Waiter { return mpicx.SendValue[*big.Float](c, nil, 1, 1) },
			"AllgatherValue":           func() future.Waiter { return mpicx.AllgatherValue[*int](c, nil) },
			"AllreduceValue":           func() future.Waiter { return mpicx.AllreduceValue(c, nil, first) },
			"AllreduceFunc":            func() future.Waiter { return mpicx.AllreduceFunc(c, []*pointed{nil}, []*pointed{nil}, first) },
			"GatherValue":              func() future.Waiter { return mpicx.GatherValue[*pointed](c, nil, 0) },
		}) {
			mpicx.Throw(explain(classIs(f().Wait(ctx), mpicx.ClassType), "%s", what))
		}
		return nil
	})
}

func classIs(err error, class mpicx.Class) error {
	if e, ok := errors.AsType[*mpicx.MPIError](err); !ok || e.Class != class {
		return fmt.Errorf("got %w, expected an *MPIError of class %v", err, class)
	}
	return nil
}

// reduceValues checks what is done with one value of each rank.
func reduceValues[T any](ctx context.Context, c *mpicx.Comm, give func(r int) T, op func(a, b T) T) error {
	n, me := c.Size(), c.Rank()
	upTo := func(ranks int) (acc T) {
		for r := range ranks {
			if r == 0 {
				acc = give(0)
			} else {
				acc = op(acc, give(r))
			}
		}
		return acc
	}
	last := (me + n - 1) % n
	sent := mpicx.SendValue(c, give(me), (me+1)%n, 1)
	errs := []error{
		gives(ctx, "RecvValue", mpicx.RecvValue[T](c, last, 1), give(last)), sent.Wait(ctx),
		gives(ctx, "AllreduceValue", mpicx.AllreduceValue(c, give(me), op), upTo(n)),
		gives(ctx, "ScanValue", mpicx.ScanValue(c, give(me), op), upTo(me+1)),
		gives(ctx, "ExscanValue", mpicx.ExscanValue(c, give(me), op), upTo(me)),
	}
	for root := range n {
		var all []T
		for r := range n {
			all = append(all, give(r+root))
		}
		errs = append(errs,
			gives(ctx, "ReduceValue", mpicx.ReduceValue(c, give(me), op, root), upTo(map[bool]int{true: n}[me == root])),
			gives(ctx, "BcastValue", mpicx.BcastValue(c, all[me], root), all[root]),
			gives(ctx, "ScatterValue", mpicx.ScatterValue(c, all, root), all[me]),
			gives(ctx, "GatherValue", mpicx.GatherValue(c, all[me], root), map[bool][]T{true: all}[me == root]),
			gives(ctx, "AllgatherValue", mpicx.AllgatherValue(c, all[me]), all))
	}
	return errors.Join(errs...)
}

// gives says that f ends with what is wanted.
func gives[T any](ctx context.Context, what string, f *future.Future[T], want T) error {
	if got, err := f.Get(ctx); err != nil || !reflect.DeepEqual(got, want) && fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		return fmt.Errorf("%s of %T: %v (%w), expected %v", what, want, got, err, want)
	}
	return nil
}

// Values of any type, with a function that does not commute.
func TestReduceValues(t *testing.T) {
	type named struct{ Name string }
	for _, n := range fitting(1, 2, 3, 4, 5, 6, 7, 8, 9) {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			return errors.Join(
				reduceValues(ctx, c, func(r int) affine { return affine{uint32(2*r + 3), uint32(r*r + 1)} }, compose),
				reduceValues(ctx, c, func(r int) [3]int8 { return [3]int8{int8(r), 1, -1} }, func(a, b [3]int8) [3]int8 {
					return [3]int8{a[0]*b[1] + b[0], a[1] * b[1], a[2]}
				}),
				reduceValues(ctx, c, func(r int) float64 { return float64(r) }, func(a, b float64) float64 { return a + b }),
				reduceValues(ctx, c, func(r int) struct{} { return struct{}{} }, func(a, b struct{}) struct{} { return a }),
				reduceValues(ctx, c, func(r int) string { return strings.Repeat(fmt.Sprint(r), r) }, func(a, b string) string { return a + b }),
				reduceValues(ctx, c, func(r int) []int { return make([]int, r) }, func(a, b []int) []int { return slices.Concat(a, []int{len(b)}, b) }),
				reduceValues(ctx, c, func(r int) named { return named{fmt.Sprint(r)} }, func(a, b named) named { return named{"(" + a.Name + b.Name + ")"} }),
			)
		})
	}
}

// MinLoc and MaxLoc: of equal values the lowest index, and a NaN before all others.
func TestLoc(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		values   []float64
		min, max int // which
	}{
		{[]float64{3}, 0, 0},
		{[]float64{3, 1, 2}, 1, 0},
		{[]float64{1, 2, 2, 1, 1.5}, 0, 1},
		{[]float64{7, 7, 7, 7}, 0, 0},
		{[]float64{0, math.Copysign(0, -1), 0}, 0, 0},
		{[]float64{math.Inf(1), math.Inf(-1), 0, math.Inf(-1), math.Inf(1)}, 1, 0},
		{[]float64{2, 1, nan, 3, nan}, 2, 2},
		{[]float64{nan, nan}, 0, 0},
		{[]float64{math.Inf(-1), nan}, 1, 1},
	} {
		var locs []mpicx.Loc[float64]
		for i, v := range test.values {
			locs = append(locs, mpicx.Loc[float64]{Value: v, Index: i})
		}
		for start, split := range product(indices(len(locs)), indices(len(locs))) { // in any order, with any brackets
			order := slices.Concat(locs[start:], locs[:start])
			require.Equal(t, fmt.Sprint(locs[test.min]), fmt.Sprint(fold(order, split, mpicx.MinLoc[float64])), "%v", order)
			require.Equal(t, fmt.Sprint(locs[test.max]), fmt.Sprint(fold(order, split, mpicx.MaxLoc[float64])), "%v", order)
		}
	}
	for _, n := range fitting(1, 5) {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			mine := []mpicx.Loc[string]{{Value: fmt.Sprint("rank ", c.Rank()%2), Index: c.Rank()}}
			greatest := make([]mpicx.Loc[string], 1)
			mpicx.AllreduceFunc(c, mine, greatest, mpicx.MaxLoc).MustWait(ctx)
			least := mpicx.AllreduceValue(c, mpicx.Loc[float32]{Value: float32(-c.Rank() / 2), Index: c.Rank()}, mpicx.MinLoc).MustGet(ctx)
			return same("greatest and least", []int{greatest[0].Index, least.Index}, []int{min(1, n-1), n - 1 - (n-1)%2})
		})
	}
}

// fold combines the first split of all, and the others, and then both.
func fold[T any](all []T, split int, f func(a, b T) T) T {
	if split > 0 {
		return f(fold(all[:split], 0, f), fold(all[split:], 0, f))
	}
	acc := all[0]
	for _, v := range all[1:] {
		acc = f(acc, v)
	}
	return acc
}

// A value that only the receiver finds wrong ends in an error of all in a Try.
func TestMismatchedValues(t *testing.T) {
	concat := func(a, b string) string { return a + b }
	keep := func(a, _ []int) []int { return a }
	mpicxtest.Run(t, 3, func(ctx context.Context, c *mpicx.Comm) error {
		odd := c.Rank()%2 == 1
		for name, calls := range inOrder(map[string]map[bool]func() future.Waiter{
			"ScatterValue": {
				false: func() future.Waiter { return mpicx.ScatterValue(c, make([]int, 3), 0) },
				true:  func() future.Waiter { return mpicx.ScatterValue[string](c, nil, 0) },
			},
			"AllgatherValue": {
				false: func() future.Waiter { return mpicx.AllgatherValue(c, []int{1}) },
				true:  func() future.Waiter { return mpicx.AllgatherValue(c, "a") },
			},
			"ScanValue": {
				false: func() future.Waiter { return mpicx.ScanValue(c, []int{1}, keep) },
				true:  func() future.Waiter { return mpicx.ScanValue(c, "a", concat) },
			},
		}) {
			err := c.TryAll(ctx, func(ctx context.Context) error { return calls[odd]().Wait(ctx) })
			mpicx.Throw(isA[*mpicx.PropagatedError](err))
			require.ErrorContains(t, err, "mpicx: "+name)
			mpicx.Throw(c.TryAll(ctx, func(ctx context.Context) error { return exchange(ctx, c, 0) })) // the next error is not this one's
		}
		return nil
	})
}
