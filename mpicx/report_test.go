package mpicx_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// printed is what Run prints of a hang.
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
`
	for name, test := range map[string]struct {
		program func(ctx context.Context, world *mpicx.Comm) error
		want    string
	}{
		"hang": {hanging, found},
		"Waits without it": {func(ctx context.Context, world *mpicx.Comm) error {
			inner, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			return hanging(inner, world)
		}, found},
		"no hang": {func(ctx context.Context, world *mpicx.Comm) error {
			time.Sleep(time.Minute - time.Nanosecond)
			return nil
		}, ""},
		"an error of a rank": {func(ctx context.Context, world *mpicx.Comm) error {
			if world.Rank() == 1 {
				return errors.New("bad input")
			}
			return hanging(ctx, world)
		}, ""},
		"in the shrunk world": {func(ctx context.Context, world *mpicx.Comm) error {
			if mpicx.Backend != "ulfm" {
				return hanging(ctx, world)
			}
			small := world.Split(world.Rank()/3, 0).MustGet(ctx)
			if err := world.Close(ctx); err != nil || small.Size() == 1 {
				return err
			}
			return mpicx.Recv(small, []int{0}, small.Rank(), 1).Wait(ctx)
		}, map[string]string{"blackchannel": found, "ulfm": `mpicx: the deadline of the job's context has passed; before, the ranks of world.split1(0) were in
  rank 0: Recv from rank 0, tag 1 on world.split1(0)
  rank 1: Recv from rank 1, tag 1 on world.split1(0)
  rank 2: Recv from rank 2, tag 1 on world.split1(0)
  the first that differs is rank 1
`}[mpicx.Backend]},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out printed
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_ = mpicx.Run(ctx, test.program, mpicx.WithRanks(4), diagnosesTo(&out))
				require.Equal(t, test.want, out.String())
			})
		})
	}
}

// A context that is cancelled is no deadline.
func TestCancelledRun(t *testing.T) {
	oneProcess(t)
	synctest.Test(t, func(t *testing.T) {
		var out printed
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		time.AfterFunc(time.Minute-time.Millisecond, cancel)
		require.ErrorIs(t, mpicx.Run(ctx, func(ctx context.Context, world *mpicx.Comm) error {
			return mpicx.Recv(world, []int{0}, world.Rank(), 1).Wait(ctx)
		}, mpicx.WithRanks(2), diagnosesTo(&out)), context.Canceled)
		require.Empty(t, out.String())
	})
}

func TestWrongSignal(t *testing.T) {
	t.Setenv("MPICX_DIAGNOSE", "SIGKILL")
	require.ErrorContains(t, mpicx.Run(t.Context(), func(context.Context, *mpicx.Comm) error { return nil }), `MPICX_DIAGNOSE="SIGKILL", expected one of SIG`)
}
