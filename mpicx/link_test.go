package mpicx_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/mpicx/go-mpicx/internal/hook"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// TestHostIsLost is run by internal/scripts/two-hosts on two hosts with half of the
// ranks each, which lose each other in the middle: those of the first all get the
// same error, and go on, and so do those of the second if they live.
func TestHostIsLost(t *testing.T) {
	trigger, lost := os.Getenv("MPICX_LOST_WHEN"), os.Getenv("MPICX_LOST_HOST")
	if trigger == "" {
		t.Skip("needs two hosts")
	}
	n := hook.Processes()
	mpicxtest.Run(t, n, func(ctx context.Context, world *mpicx.Comm) error {
		half := world.Rank() / (n / 2)
		err := world.Guard(ctx, func(ctx context.Context) error {
			for i := 0; ; i++ {
				if err := mpicx.Allreduce(world, []int{i}, []int{0}, mpicx.Max).Wait(ctx); err != nil {
					return err
				}
				switch {
				case i == 100 && world.Rank() == 0:
					if err := os.WriteFile(trigger, nil, 0o666); err != nil { // the script does its work
						return err
					}
				case i == 200 && half == 1 && lost == "exit":
					os.Exit(3)
				case i == 200 && half == 1 && lost == "kill":
					mpicxtest.Die(world)
				}
			}
		})
		c, ok := err.(*mpicx.CommCorruptedError)
		if !ok || len(c.Dead) == 0 {
			return fmt.Errorf("got %w", err)
		}
		told := since(trigger)
		rest := world
		for rest.Size() != n/2 { // the others may be lost one after another
			if rest, err = world.Shrink().Get(ctx); err != nil { // of the world: generations are bounded
				return err
			}
			if err := rest.Barrier().Wait(ctx); err != nil && !corrupted(err) {
				return err
			}
		}
		if err := exchange(ctx, rest, 0); err != nil {
			return err
		}
		text := fmt.Sprintf("rank %d: %v; %d ranks go on, the error came after %d ms\n", world.Rank(), c, rest.Size(), told.Milliseconds())
		return os.WriteFile(fmt.Sprint(trigger, ".", world.Rank()), []byte(text), 0o666)
	})
}

// since is the age of a file.
func since(name string) time.Duration {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return time.Since(info.ModTime()).Round(time.Millisecond)
}
