package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mpicx/go-mpicx/internal/exampletest"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/inject"
)

// Rank 1 dies, and a spare takes its place: the spare opens the store where the others rejoin
// it, and Restore gives it what rank 1 had saved.
func Example_replace() {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		var st *checkpoint.Store
		var x []float64
		comm := world
		for {
			err := comm.TryAll(ctx, func(ctx context.Context) (err error) {
				if st, err = enter(ctx, st, comm, checkpoint.Partner(1)); err != nil {
					return err
				}
				st.Protect("x", &x)
				v, err := st.Restore(ctx)
				if errors.Is(err, checkpoint.ErrNone) {
					v, x = 0, []float64{float64(comm.Rank())}
				} else if err != nil {
					return err
				}
				for v++; v <= 4; v++ {
					x[0] *= 10
					st.Save(ctx, v).MustWait(ctx)
					if v == 2 && comm.Rank() == 1 && comm.Incarnation() == 0 {
						inject.Die(comm)
					}
				}
				return nil
			})
			if _, ok := errors.AsType[*mpicx.CommCorruptedError](err); ok {
				if comm, err = comm.Replace().Get(ctx); err != nil {
					return err
				}
				continue
			}
			if comm.Rank() == 1 {
				fmt.Println("rank 1, incarnation", comm.Incarnation(), "has", x)
			}
			return errors.Join(err, st.Close(ctx))
		}
	}, mpicx.WithRanks(4), mpicx.WithSpares(1))
	fmt.Println(err)
	// With -tags ulfm this prints:
	// rank 1, incarnation 1 has [10000]
	// <nil>
}

// Rank 1 dies, and the others continue without it. Rank 0 takes over what rank 1 had saved: Load
// reads it from whoever has a copy.
func ExampleLoad() {
	_ = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		st, err := checkpoint.Open(ctx, world, checkpoint.Partner(1))
		if err != nil {
			return err
		}
		x := []float64{float64(10 * world.Rank())}
		st.Protect("x", &x)
		err = st.Save(ctx, 1).Wait(ctx)
		if world.Rank() == 1 {
			inject.Die(world)
		}
		if err == nil {
			err = world.Barrier().Wait(ctx) // reports the death, if Save did not
		}
		if _, ok := errors.AsType[*mpicx.CommCorruptedError](err); !ok {
			return err
		}
		smaller, err := world.Shrink().Get(ctx)
		if err != nil {
			return err
		}
		if st, err = st.Rejoin(ctx, smaller); err != nil {
			return err
		}
		version, err := st.Restore(ctx)
		if err != nil {
			return err
		}
		whose := checkpoint.None // for most ranks there is nothing to take over
		if smaller.Rank() == 0 {
			whose = 1
		}
		lost, err := checkpoint.Load[float64](ctx, st, "x", whose, version)
		if smaller.Rank() == 0 {
			fmt.Println("rank 0 has", x, "and", lost)
		}
		return errors.Join(err, st.Close(ctx))
	}, mpicx.WithRanks(3))
	// With -tags ulfm this prints:
	// rank 0 has [0] and [10]
}

func TestExamplesOfDeaths(t *testing.T) {
	exampletest.Check(t, "example_deaths_test.go", map[string]func(){
		"Example_replace": Example_replace,
		"ExampleLoad":     ExampleLoad,
	})
}

// enter opens a store, or has the one of this rank rejoin. A store that cannot stays as it was.
func enter(ctx context.Context, st *checkpoint.Store, comm *mpicx.Comm, opts ...checkpoint.Option) (*checkpoint.Store, error) {
	if st == nil {
		return checkpoint.Open(ctx, comm, opts...)
	}
	on, err := st.Rejoin(ctx, comm)
	if err != nil {
		return st, err
	}
	return on, nil
}
