package mpicxtest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// helpers are ways of a rank to have something done by another goroutine, do something meanwhile,
// and wait for it. If the other goroutine dies, the rank does not hear of it in some of them.
var helpers = map[string]func(help, meanwhile func()){
	"goroutine": func(help, meanwhile func()) { go help(); meanwhile() },
	"WaitGroup": func(help, meanwhile func()) {
		var wg sync.WaitGroup
		wg.Go(help)
		meanwhile()
		wg.Wait()
	},
	"channel": waitForChannel,
	"future": func(help, meanwhile func()) {
		f := future.Go(func() (int, error) { help(); return 0, nil })
		meanwhile()
		_ = f.Wait(context.Background())
	},
}

func waitForChannel(help, meanwhile func()) {
	done := make(chan bool, 1) // the rank may die on the goroutine that waits, and help be over
	go func() { help(); done <- true }()
	meanwhile()
	<-done
}

// A rank dies on a goroutine of its own making: the survivors' tests continue, whatever its other
// goroutines wait for.
func TestDeathInHelper(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	type act = func(context.Context, *mpicx.Comm)
	deadly := map[string]act{
		"Die":            func(_ context.Context, world *mpicx.Comm) { mpicxtest.Die(world) },
		"kill in Send":   func(ctx context.Context, world *mpicx.Comm) { _ = mpicx.Send(world, []int{1}, 0, 1).Wait(ctx) },
		"kill in a wait": func(ctx context.Context, world *mpicx.Comm) { _ = world.Barrier().Wait(ctx) },
	}
	meanwhile := map[string]act{
		"nothing":     func(context.Context, *mpicx.Comm) {},
		"a Wait":      func(ctx context.Context, world *mpicx.Comm) { _ = mpicx.Recv(world, []int{0}, 0, 9).Wait(ctx) },
		"its context": func(ctx context.Context, _ *mpicx.Comm) { <-ctx.Done() },
	}
	for how, die := range deadly {
		for with, helper := range helpers {
			for during, wait := range meanwhile {
				help := func(ctx context.Context, world *mpicx.Comm) {
					helper(func() { die(ctx, world) }, func() { wait(ctx, world) })
				}
				t.Run(fmt.Sprint(how, ", ", with, ", ", during), func(t *testing.T) { diesInHelper(t, how, help) })
			}
		}
	}
}

// diesInHelper has rank 1 die in help, of which the others learn.
func diesInHelper(t *testing.T, how string, help func(context.Context, *mpicx.Comm)) {
	plan := "kill 1 at operation 1"
	if how == "Die" {
		plan = ""
	}
	mpicxtest.RunFaults(t, 3, plan, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			help(ctx, world)
		}
		var err error
		for err == nil { // what the other goroutine began may have left
			err = world.Barrier().Wait(ctx)
		}
		c, is := errors.AsType[*mpicx.CommCorruptedError](err)
		require.True(t, is, "%v", err)
		require.Equal(t, []int{1}, c.Dead)
		return nil
	})
}
