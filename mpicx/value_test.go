package mpicx_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// exchangeValues sends v around the ring, and through the collective operations without a function.
func exchangeValues[T any](ctx context.Context, c *mpicx.Comm, v T) error {
	n, me := c.Size(), c.Rank()
	root := n - 1
	all := make([]T, n)
	for r := range all {
		all[r] = v
	}
	check := func(what string, got T, err error) error {
		if err != nil || fmt.Sprintf("%+v", pointee(got)) != fmt.Sprintf("%+v", pointee(v)) {
			return fmt.Errorf("%s: %v (%w), expected %v", what, got, err, v)
		}
		return nil
	}
	list := func(what string, f *future.Future[[]T], length int) error {
		got, err := f.Get(ctx)
		errs := []error{err}
		for i := range length {
			errs = append(errs, check(what, got[i], nil))
		}
		return errors.Join(errs...)
	}
	sent := mpicx.SendValue(c, v, (me+1)%n, 1)
	received, err := mpicx.RecvValue[T](c, (me+n-1)%n, 1).Get(ctx)
	errs := []error{check("RecvValue", received, err), sent.Wait(ctx)}
	broadcast, err := mpicx.BcastValue(c, v, root).Get(ctx)
	errs = append(errs, check("BcastValue", broadcast, err))
	scattered, err := mpicx.ScatterValue(c, all, root).Get(ctx)
	errs = append(errs, check("ScatterValue", scattered, err), list("AllgatherValue", mpicx.AllgatherValue(c, v), n))
	atRoot := 0
	if me == root {
		atRoot = n
	}
	return errors.Join(append(errs, list("GatherValue", mpicx.GatherValue(c, v, root), atRoot))...)
}

// pointee returns what a pointer to a pointer points to, for fmt.
func pointee(v any) any {
	if p, ok := v.(**big.Int); ok {
		return *p
	}
	return v
}

// Pointers to values are sent, also of types whose encoder has a pointer receiver.
func TestValuesBehindPointers(t *testing.T) {
	type both struct{ A, None *big.Int }
	add := func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
	for _, n := range fitting(1, 2, 3, 5) {
		mpicxtest.Run(t, n, func(ctx context.Context, c *mpicx.Comm) error {
			x := big.NewInt(-5)
			return errors.Join(
				exchangeValues(ctx, c, x), exchangeValues(ctx, c, *x), exchangeValues(ctx, c, &x),
				exchangeValues(ctx, c, big.NewRat(1, 3)),
				exchangeValues(ctx, c, both{A: x}), exchangeValues(ctx, c, []*big.Int{x, x}),
				exchangeValues[error](ctx, c, nil), exchangeValues[any](ctx, c, 1.5),
				reduceValues(ctx, c, func(r int) *big.Int { return big.NewInt(int64(r * r)) }, add),
			)
		})
	}
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
		for what, f := range map[string]future.Waiter{
			"SendValue":                mpicx.SendValue[*int](c, nil, 1, 1),
			"SendValue of an encoder":  mpicx.SendValue[*pointed](c, nil, 1, 1),
			"SendValue of an inner":    mpicx.SendValue(c, &inner, 1, 1),
			"SendValue of an element":  mpicx.SendValue(c, []*pointed{{1}, nil}, 1, 1),
			"SendValue in a map":       mpicx.SendValue(c, map[int]*pointed{1: nil}, 1, 1),
			"SendValue of a function":  mpicx.SendValue(c, func() {}, 1, 1),
			"SendValue of a big float": mpicx.SendValue[*big.Float](c, nil, 1, 1),
		} {
			if err := classIs(f.Wait(ctx), mpicx.ClassType); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		for what, f := range map[string]func() future.Waiter{
			"AllgatherValue": func() future.Waiter { return mpicx.AllgatherValue[*int](c, nil) },
			"AllreduceValue": func() future.Waiter { return mpicx.AllreduceValue(c, nil, first) },
			"AllreduceFunc":  func() future.Waiter { return mpicx.AllreduceFunc(c, []*pointed{nil}, []*pointed{nil}, first) },
			"GatherValue":    func() future.Waiter { return mpicx.GatherValue[*pointed](c, nil, 0) },
		} {
			if err := classIs(f().Wait(ctx), mpicx.ClassType); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
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
