package mpicx_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// run collects what each rank found, for the test to look at after the run.
func run[T any](t *testing.T, n int, fn func(ctx context.Context, world *mpicx.Comm) (T, error)) []T {
	t.Helper()
	all := make([]T, n)
	mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) (err error) {
		all[world.Rank()], err = fn(ctx, world)
		return err
	})
	if t.Failed() {
		t.FailNow()
	}
	return gather(t, all)
}

// settle lets all other ranks go on until each is blocked or done: time is fake.
func settle() { time.Sleep(time.Second) }

// propagated says that err is the verdict of one error of these codes.
func propagated(err error, codes ...int) error {
	p, is := err.(*mpicx.PropagatedError)
	if !is {
		return fmt.Errorf("got %v, expected an error of codes %v", err, codes)
	}
	var got []int
	for _, f := range p.Failures {
		got = append(got, f.Code)
	}
	if !slices.Equal(got, codes) {
		return fmt.Errorf("got codes %v, expected %v", got, codes)
	}
	return nil
}

// corruption says that err is the verdict of a corruption by this rank.
func corruption(err error, rank int) error {
	c, is := err.(*mpicx.CommCorruptedError)
	if !is || len(c.Failures) != 1 || c.Failures[0].Rank != rank {
		return fmt.Errorf("got %v, expected a corruption by rank %d", err, rank)
	}
	return nil
}

// signalled has rank 0 signal, and all get that.
func signalled(ctx context.Context, c *mpicx.Comm, code int) error {
	if c.Rank() == 0 {
		return propagated(c.SignalError(ctx, code), code)
	}
	return propagated(mpicx.Recv(c, []int{0}, 0, 99).Wait(ctx), code)
}

// bothBackends runs a test with each.
func bothBackends(t *testing.T, test func(t *testing.T, backend mpicx.Option)) {
	for _, name := range []string{"blackchannel", "ulfm"} {
		t.Run(name, func(t *testing.T) { test(t, hook.Backend[mpicx.Option](name)) })
	}
}

// dup returns a duplicate of world that all ranks have: no error finds one of them in
// Dup any more.
func dup(ctx context.Context, world *mpicx.Comm) (child *mpicx.Comm) {
	err := world.TryAll(ctx, func(ctx context.Context) (err error) {
		child, err = world.Dup().Get(ctx)
		return err
	})
	mpicx.Throw(err)
	return child
}

// diagnosesTo makes Run write its report of a hang to w.
func diagnosesTo(w io.Writer) mpicx.Option {
	return hook.Option[mpicx.Option](func(s *hook.Settings) { s.Diagnoses = w })
}
