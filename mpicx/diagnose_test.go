package mpicx_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// A hang is a program that does not end by itself, and what Diagnose says of it.
type hang struct {
	ranks   int
	program func(ctx context.Context, world *mpicx.Comm) error
	want    string
}

// compute does so until rank 0 ends the program.
func compute(world *mpicx.Comm) error {
	for world.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return world.Err()
}

// hangs are programs that hang, as beginners write them.
var hangs = map[string]hang{
	"all but one in a Barrier": {4, func(ctx context.Context, world *mpicx.Comm) error {
		dup := world.Dup().MustGet(ctx)
		if world.Rank() == 2 {
			mpicx.Recv(dup, []int{0}, 3, 9).MustWait(ctx)
		}
		return world.Barrier().Wait(ctx)
	}, "ranks 0, 1, 3: Barrier #2 on world; rank 2: Recv from rank 3, tag 9 on world.dup1; the first that differs is rank 2; call 1 of world: Dup at ranks 0-3; ● call 2 of world: Barrier at ranks 0, 1, 3 | none at rank 2"},
	"one has returned, and waits in Run": {2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			world.Barrier()
			return nil
		}
		return mpicx.Recv(world, []int{0}, 1, 3).Wait(ctx)
	}, "rank 0: Recv from rank 1, tag 3 on world; rank 1: returned, waits for what it has begun: Barrier #1 on world; the first that differs is rank 1; ● call 1 of world: none at rank 0 | Barrier at rank 1"},
	"one computes": {3, func(ctx context.Context, world *mpicx.Comm) error {
		world.Barrier().MustWait(ctx)
		if world.Rank() == 1 {
			return compute(world)
		}
		return mpicx.Allreduce(world, []float64{1}, []float64{0}, mpicx.Sum).Wait(ctx)
	}, "ranks 0, 2: Allreduce(Sum, 1 × float64) #2 on world; rank 1: computing: nothing pending, last Barrier #1 on world; the first that differs is rank 1; call 1 of world: Barrier at ranks 0-2; ● call 2 of world: Allreduce(Sum, 1 × float64) at ranks 0, 2 | none at rank 1"},
	"a receive that nobody waits for": {2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 0 {
			return world.Barrier().Wait(ctx)
		}
		f := mpicx.Recv(world, []int{0}, 0, 3)
		return errors.Join(compute(world), f.Wait(ctx))
	}, "rank 0: Barrier #1 on world; rank 1: waits for none of what is pending: Recv from rank 0, tag 3 on world; the first that differs is rank 1; ● call 1 of world: Barrier at rank 0 | none at rank 1"},
	"two goroutines": {2, func(ctx context.Context, world *mpicx.Comm) error {
		a, b := mpicx.Recv(world, []int{0}, 1-world.Rank(), 1), mpicx.Recv(world, []int{0}, 1-world.Rank(), 2)
		other := future.Go(func() (int, error) { return 0, a.Wait(ctx) })
		return errors.Join(b.Wait(ctx), other.Wait(ctx))
	}, "rank 0: Recv from rank 1, tag 1 and Recv from rank 1, tag 2 on world; rank 1: Recv from rank 0, tag 1 and Recv from rank 0, tag 2 on world; the first that differs is rank 1"},
	"in a row of a grid": {4, func(ctx context.Context, world *mpicx.Comm) error {
		row := world.Split(world.Rank()/2, 0).MustGet(ctx)
		if world.Rank() == 3 {
			return mpicx.Recv(row, []int{0}, 0, 4).Wait(ctx)
		}
		row.Barrier().MustWait(ctx)
		return world.Barrier().Wait(ctx)
	}, "ranks 0, 1: Barrier #2 on world; rank 2: Barrier #1 on world.split1(1); rank 3: Recv from rank 0, tag 4 on world.split1(1); the first that differs is rank 2; call 1 of world: Split at ranks 0-3; ● call 2 of world: Barrier at ranks 0, 1 | none at ranks 2, 3"},
	"after an error": {2, func(ctx context.Context, world *mpicx.Comm) error {
		_ = world.Try(ctx, fails(world, 1, errors.New("bad input")))
		return mpicx.Recv(world, []int{0}, 1-world.Rank(), 0).Wait(ctx)
	}, "rank 0: Recv from rank 1, tag 0 on world, epoch 1; rank 1: Recv from rank 0, tag 0 on world, epoch 1; the first that differs is rank 1"},
}

// A wrong program that hangs is told from afar, whatever its ranks are in.
func TestDiagnoseHangs(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		for name, h := range hangs {
			synctest.Test(t, func(t *testing.T) {
				found := make(chan string, 2)
				_ = mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
					go h.ask(ctx, world, found)
					return h.program(ctx, world)
				}, backend, mpicx.WithRanks(h.ranks))
				require.Equal(t, []string{h.want, h.want}, []string{<-found, <-found}, name)
			})
		}
	})
}

// ask diagnoses the hang at ranks 0 and 1, one after the other, and ends it then.
func (h *hang) ask(ctx context.Context, world *mpicx.Comm, found chan<- string) {
	if world.Rank() > 1 {
		return
	}
	time.Sleep(time.Duration(world.Rank()+1) * time.Second)
	if d, err := world.Diagnose(ctx); err == nil {
		found <- d.String()
	}
	if world.Rank() == 1 {
		_ = world.SignalError(ctx, 1)
	}
}

// The same with ranks that are processes, which mpicxrun or another launcher has started.
func TestDiagnoseHangsOfProcesses(t *testing.T) {
	for name, h := range inOrder(hangs) { // at all processes alike
		if len(fitting(h.ranks)) > 0 {
			t.Run(name, h.ofProcesses)
		}
	}
}

// ofProcesses has rank 0 diagnose the hang, and end it.
func (h hang) ofProcesses(t *testing.T) {
	var text string
	program := func(ctx context.Context, world *mpicx.Comm) (err error) {
		if world.Rank() == 0 {
			asked := future.Go(func() (string, error) { return h.diagnosed(ctx, world), nil })
			defer func() { text = asked.MustGet(ctx) }()
		}
		defer func() { t.Log(err); err = nil }() // it is how the hang ends
		defer future.Catch(&err)
		return h.program(ctx, world)
	}
	if processes != nil {
		mpicxtest.Run(t, h.ranks, program)
		require.True(t, processes.World().Rank() > 0 || h.want == text, text)
		return
	}
	all := mpicxtest.RunProcesses(t, h.ranks, func(ctx context.Context, world *mpicx.Comm) error {
		err := program(ctx, world)
		mpicxtest.Hand(text)
		return err
	})
	require.Equal(t, []string{h.want}, mpicxtest.ValuesOf[string](t, all[0]))
}

// diagnosed returns what Diagnose says once all ranks have come to where they hang, and ends
// the hang.
func (h *hang) diagnosed(ctx context.Context, world *mpicx.Comm) (text string) {
	for begin := time.Now(); time.Since(begin) < time.Minute && text != h.want; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		d, err := world.Diagnose(ctx)
		cancel()
		if text = untimed(d.String()); err != nil {
			text = err.Error()
		}
	}
	_ = world.SignalError(ctx, 1)
	return text
}

// It works on a communicator that nothing else works on, and on one that not all have made.
func TestDiagnoseOfWhatIsBroken(t *testing.T) {
	oneProcess(t)
	mpicxtest.Run(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		diagnosed := func(c *mpicx.Comm) *mpicx.Diagnosis {
			d, err := c.Diagnose(ctx)
			require.NoError(t, err)
			return d
		}
		if world.Rank() < 2 {
			dup := world.Dup()
			settle() // with ULFM it waits for rank 2
			if mpicx.Backend != "ulfm" {
				require.Equal(t, "ranks 0, 1: computing: nothing pending, last Dup #1 on world; rank 2: computing: nothing pending; the first that differs is rank 2",
					diagnosed(dup.MustGet(ctx)).String())
			}
		}
		time.Sleep(time.Minute)
		require.Error(t, world.Guard(ctx, fails(world, 1, errors.New("bad input"))))
		settle()
		require.Empty(t, diagnosed(world).NoAnswer)
		settle()
		return nil
	})
}

// untimed takes out the times of calls.
func untimed(text string) string {
	return regexp.MustCompile(` \(..:..:..\)`).ReplaceAllString(text, "")
}

// printed is what Run or a logger prints.
type printed struct {
	mu sync.Mutex
	strings.Builder
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Builder.Write(b)
}

// When the deadline of Run's context ends it, Run prints what the ranks were in before that: as
// their Waits end with it as well, they are in nothing afterwards.
func TestDeadlineOfRun(t *testing.T) {
	oneProcess(t)
	hanging := func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 2 {
			return mpicx.Recv(world, []int{0}, 0, 9).Wait(ctx)
		}
		return world.Barrier().Wait(ctx)
	}
	const found = `mpicx: the deadline of the job's context has passed; before, the ranks of world were in
  ranks 0, 1, 3: Barrier #1 on world
  rank 2: Recv from rank 0, tag 9 on world
  the first that differs is rank 2
  ● call 1 of world: Barrier at ranks 0, 1, 3 | none at rank 2
`
	for name, test := range map[string]struct {
		program func(ctx context.Context, world *mpicx.Comm) error
		want    string
	}{
		"hang":              {hanging, found},
		"cancelled, before": {hanging, ""},
		"Waits without it": {func(ctx context.Context, world *mpicx.Comm) error {
			inner, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			return hanging(inner, world)
		}, found},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out printed
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if name == "cancelled, before" {
					time.AfterFunc(time.Minute-time.Millisecond, cancel)
				}
				err := mpicx.Run(ctx, test.program, mpicx.WithRanks(4), diagnosesTo(&out))
				require.Equal(t, name == "cancelled, before", errors.Is(err, context.Canceled))
				require.Equal(t, test.want, out.String())
			})
		})
	}
}

func TestWrongSignal(t *testing.T) {
	t.Setenv("MPICX_DIAGNOSE", "SIGKILL")
	require.ErrorContains(t, mpicx.Run(t.Context(), returns), `MPICX_DIAGNOSE="SIGKILL", expected one of SIG`)
}
