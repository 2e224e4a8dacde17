// Rank 2 ends in one of several ways, and the others continue if they can.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

var end = flag.String("end", "", "how rank 2 ends: `error`, panic, exit or kill")

func main() {
	flag.Parse()
	mpicx.Exit(mpicx.Run(context.Background(), program))
}

func program(ctx context.Context, world *mpicx.Comm) error {
	if world.Rank() == 0 {
		fmt.Printf("%d ranks, transport %s, backend %s\n", world.Size(), world.Transport(), mpicx.Backend)
	}
	err := world.Guard(ctx, func(ctx context.Context) error {
		if world.Rank() == 2 {
			switch *end {
			case "error":
				return errors.New("the input is wrong")
			case "panic":
				panic("a bug")
			case "exit":
				os.Exit(3)
			case "kill":
				inject.Die(world)
			}
		}
		return world.Barrier().Wait(ctx)
	})
	c, ok := errors.AsType[*mpicx.CommCorruptedError](err)
	if !ok || len(c.Dead) == 0 {
		return err
	}
	survivors, err := world.Shrink().Get(ctx)
	if err != nil {
		return err
	}
	if survivors.Rank() == 0 {
		fmt.Printf("%d ranks go on without %v\n", survivors.Size(), c.Dead)
	}
	return survivors.Barrier().Wait(ctx)
}
