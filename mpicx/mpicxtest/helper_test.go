package mpicxtest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// helpers are how a rank has something done by another goroutine, does something
// meanwhile, and waits for it. Where the other one dies, some do not hear of it.
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

// A rank dies on a goroutine of its own making: the survivors' tests go on, whatever
// its others wait for.
func TestDeathInHelper(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for how, deadly := range map[string]func(context.Context, *mpicx.Comm){
		"Die":            func(_ context.Context, world *mpicx.Comm) { mpicxtest.Die(world) },
		"kill in Send":   func(ctx context.Context, world *mpicx.Comm) { _ = mpicx.Send(world, []int{1}, 0, 1).Wait(ctx) },
		"kill in a wait": func(ctx context.Context, world *mpicx.Comm) { _ = world.Barrier().Wait(ctx) },
	} {
		for with, helper := range helpers {
			for during, meanwhile := range map[string]func(context.Context, *mpicx.Comm){
				"nothing":     func(context.Context, *mpicx.Comm) {},
				"a Wait":      func(ctx context.Context, world *mpicx.Comm) { _ = mpicx.Recv(world, []int{0}, 0, 9).Wait(ctx) },
				"its context": func(ctx context.Context, _ *mpicx.Comm) { <-ctx.Done() },
			} {
				t.Run(fmt.Sprint(how, ", ", with, ", ", during), func(t *testing.T) {
					plan := "kill 1 at operation 1"
					if how == "Die" {
						plan = ""
					}
					mpicxtest.RunFaults(t, 3, plan, dyingInHelper(func(ctx context.Context, world *mpicx.Comm) {
						helper(func() { deadly(ctx, world) }, func() { meanwhile(ctx, world) })
					}))
				})
			}
		}
	}
}

// dyingInHelper has rank 1 die in help, which all learn.
func dyingInHelper(help func(context.Context, *mpicx.Comm)) func(context.Context, *mpicx.Comm) error {
	return func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			help(ctx, world)
		}
		var err error
		for err == nil { // what the other goroutine began may have left
			err = world.Barrier().Wait(ctx)
		}
		if c, is := errors.AsType[*mpicx.CommCorruptedError](err); !is || len(c.Dead) != 1 || c.Dead[0] != 1 {
			return fmt.Errorf("got %v, expected that rank 1 has died", err)
		}
		return nil
	}
}
