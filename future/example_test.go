package future_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mpicx/go-mpicx/future"
)

// Two pieces of work that proceed at the same time.
func ExampleGo() {
	ctx := context.Background()
	square := func(x float64) *future.Future[float64] {
		return future.Go(func() (float64, error) {
			if x < 0 {
				return 0, fmt.Errorf("side of %g", x)
			}
			return x * x, nil
		})
	}
	a, b := square(3), square(-4)
	fmt.Println(a.Get(ctx))
	fmt.Println(b.Get(ctx))
	// Output:
	// 9 <nil>
	// 0 side of -4
}

// A function that starts an operation returns a future and keeps the promise.
func ExampleNew() {
	answer, promise := future.New[string]()
	question := make(chan string)
	go func() {
		if q := <-question; q == "" {
			promise.Complete("", errors.New("nothing was asked"))
		} else {
			promise.Complete("what is "+q+"?", nil)
		}
	}()

	done, _ := answer.Test()
	fmt.Println("done:", done)
	question <- "a residual"
	fmt.Println(answer.Get(context.Background()))
	// Output:
	// done: false
	// what is a residual? <nil>
}

// Which of several operations is done first, where it may take only so long.
func ExampleWaitAny() {
	slow, _ := future.New[int]() // nobody ends it
	fast := future.Go(func() (int, error) { return 42, nil })

	i, err := future.WaitAny(context.Background(), slow, fast)
	fmt.Println(i, err)

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	i, err = future.WaitAny(ctx, slow)
	fmt.Println(i, err)
	// Output:
	// 1 <nil>
	// -1 context deadline exceeded
}

// All of several operations, of any types.
func ExampleWaitAll() {
	n := future.Go(func() (int, error) { return 3, nil })
	name := future.Go(func() (string, error) { return "", errors.New("has no name") })
	fmt.Println(future.WaitAll(context.Background(), n, name))
	// Output: has no name
}

// MustGet throws errors to whoever turns them back into one.
func ExampleCatch() {
	sum := func(a, b *future.Future[int]) (total int, err error) {
		defer future.Catch(&err)
		ctx := context.Background()
		return a.MustGet(ctx) + b.MustGet(ctx), nil
	}
	fmt.Println(sum(future.Ready(1), future.Ready(2)))
	fmt.Println(sum(future.Ready(1), future.Failed[int](errors.New("no second summand"))))
	// Output:
	// 3 <nil>
	// 0 no second summand
}

// GetAll returns the values of several pieces of work.
func ExampleGetAll() {
	var squares []*future.Future[int]
	for i := range 4 {
		squares = append(squares, future.Go(func() (int, error) { return i * i, nil }))
	}
	fmt.Println(future.GetAll(context.Background(), squares...))
	// Output: [0 1 4 9] <nil>
}
