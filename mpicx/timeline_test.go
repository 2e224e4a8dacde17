package mpicx_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/trace"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/buildtags"
	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// eventsOf reads what a job of this process has recorded.
func eventsOf(t *testing.T, dir string) []observe.Event {
	files, err := observe.ReadTimelines(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "one of a process")
	return files[0].Lines
}

// hasEvents requires that a rank has had events of these kinds, in this order, and returns the line
// of the last. Whatever else it has had in between does not matter.
func hasEvents(t *testing.T, lines []observe.Event, rank int, kinds string) (last observe.Event) {
	t.Helper()
	rest := strings.Fields(kinds)
	for _, l := range lines {
		if l.Rank == rank && len(rest) > 0 && string(l.Kind) == rest[0] {
			rest, last = rest[1:], l
		}
	}
	require.Empty(t, rest, "rank %d, of %s", rank, kinds)
	return last
}

func TestTimelineOfAnError(t *testing.T) {
	oneProcess(t)
	bothBackends(t, func(t *testing.T, backend mpicx.Option) {
		dir := t.TempDir()
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			err := world.Try(ctx, fails(world, 2, errors.New("diverged")))
			mpicx.Throw(isA[*mpicx.PropagatedError](err))
			world.Mark("again")
			return world.Barrier().Wait(ctx)
		}, mpicx.WithRanks(4), mpicx.WithTimeline(dir), backend))
		lines := eventsOf(t, dir)
		for rank := range 4 {
			why := "notice"
			if rank == 2 {
				why = "fault"
			}
			require.Equal(t, "world", hasEvents(t, lines, rank, "start "+why).Comm)
			hasEvents(t, lines, rank, "start "+why+" join verdict epoch mark end")
			require.Contains(t, hasEvents(t, lines, rank, "verdict").Text, "diverged")
			require.Equal(t, "again", hasEvents(t, lines, rank, "mark").Text)
		}
	})
}

// A recovery with Replace, and one with Shrink, as each rank has it.
func TestTimelineOfARepair(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for name, repair := range map[observe.Kind]func(*mpicx.Comm) *future.Future[*mpicx.Comm]{
		observe.Replace: (*mpicx.Comm).Replace, observe.Shrink: (*mpicx.Comm).Shrink,
	} {
		dir := t.TempDir()
		killed := mpicxtest.RunFaults(t, 4, "kill 2 in Allreduce step 1 call 3", func(ctx context.Context, world *mpicx.Comm) error {
			for i := 0; i < 5; i++ {
				if mpicx.Allreduce(world, []int{1}, []int{0}, mpicx.Sum).Wait(ctx) != nil {
					world, i = repair(world).MustGet(ctx), -1
				}
			}
			return nil
		}, mpicx.WithSpares(1), mpicx.WithTimeline(dir))
		require.Equal(t, []int{2}, killed)
		lines := eventsOf(t, dir)
		for _, rank := range []int{0, 1, 3} {
			require.Equal(t, 2, *hasEvents(t, lines, rank, "start death").By)
			hasEvents(t, lines, rank, "start death verdict epoch "+string(name)+" end")
			hasEvents(t, lines, rank, "start notice join verdict epoch repair "+string(name)+" end")
		}
		hasEvents(t, lines, 2, "start dies")
		if name == observe.Replace {
			require.Equal(t, 2, *hasEvents(t, lines, 4, "start death replace").As)
			hasEvents(t, lines, 4, "start death replace end")
		}
	}
}

func TestTimelineOfAnInstance(t *testing.T) {
	oneProcess(t)
	dir := t.TempDir()
	for range 2 {
		i, err := mpicx.Initialize(t.Context(), mpicx.WithTimeline(dir))
		require.NoError(t, err)
		i.World().Mark("between")
		require.NoError(t, i.Finalize(t.Context()))
	}
	require.Equal(t, 2, hasEvents(t, eventsOf(t, dir), 0, "start mark end start mark end").Run)
}

func TestTimelineThatCantBe(t *testing.T) {
	oneProcess(t)
	name := filepath.Join(t.TempDir(), "taken")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	program := func(context.Context, *mpicx.Comm) error { return errors.New("called") }
	err := mpicx.Run(t.Context(), program, mpicx.WithTimeline(name))
	require.ErrorContains(t, err, name)
	require.NotContains(t, err.Error(), "called")
	t.Setenv("MPICX_TIMELINE", filepath.Join(name, "below"))
	require.ErrorContains(t, mpicx.Run(t.Context(), program), name)
	dir := t.TempDir()
	require.ErrorContains(t, mpicx.Run(t.Context(), program, mpicx.WithTimeline(dir)), "called", "the option goes before the environment")
	require.NotEmpty(t, eventsOf(t, dir))
}

// Two goroutines of a rank, and WaitAny.
func TestTimelineOfSeveralWaits(t *testing.T) {
	oneProcess(t)
	dir := t.TempDir()
	t.Setenv("MPICX_TIMELINE", dir)
	mpicxtest.Run(t, 2, func(ctx context.Context, world *mpicx.Comm) error {
		if world.Rank() == 1 {
			settle()
			for tag := range 3 {
				mpicx.Send(world, []int{tag}, 0, tag).MustWait(ctx)
			}
			return nil
		}
		first := make(chan error)
		go func() { first <- mpicx.Recv(world, []int{0}, 1, 0).Wait(ctx) }()
		other, another := mpicx.Recv(world, []int{0}, 1, 1), mpicx.Recv(world, []int{0}, 1, 2)
		_, err := future.WaitAny(ctx, other, another)
		return errors.Join(err, future.WaitAll(ctx, other, another), <-first)
	})
	var names []string
	for _, l := range eventsOf(t, dir) {
		if l.Kind == observe.Waited && l.Rank == 0 {
			names = append(names, l.Op)
		}
	}
	require.Contains(t, names, "WaitAny of 2")
	require.Contains(t, names, "Recv from rank 1, tag 0 on world")
}

// Without a timeline a Wait that blocks allocates nothing: it is not even asked what it waits for.
func TestNoTimelineCostsNothing(t *testing.T) {
	oneProcess(t)
	if buildtags.Race {
		t.Skip("the race detector allocates")
	}
	const trips = 1000
	require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		peer := 1 - world.Rank()
		send, recv := mpicx.SendInit(world, []int{1}, peer, 0), mpicx.RecvInit(world, []int{0}, peer, 0)
		if world.Rank() == 1 {
			for range trips + 1 { // AllocsPerRun makes one more
				mpicx.Throw(errors.Join(recv.Start().Wait(ctx), send.Start().Wait(ctx)))
			}
			return nil
		}
		require.Zero(t, testing.AllocsPerRun(trips, func() {
			sent, got := send.Start(), recv.Start()
			got.MustWait(ctx)
			sent.MustWait(ctx)
		}))
		return nil
	}, mpicx.WithRanks(2)))
}

func TestRuntimeTrace(t *testing.T) {
	oneProcess(t)
	if trace.IsEnabled() {
		t.Skip("a trace is being made")
	}
	var b bytes.Buffer
	require.NoError(t, trace.Start(&b))
	inBubble(t, 3, func(ctx context.Context, world *mpicx.Comm) error {
		world.Mark("here")
		err := signalled(ctx, world, 7)
		if world.Rank() == 1 {
			settle() // the others are blocked
		}
		return errors.Join(err, world.Barrier().Wait(ctx))
	}, mpicx.WithRuntimeTrace())
	trace.Stop()
	for _, text := range []string{"mpicx error", "mpicx fault", "mpicx notice", "mpicx verdict", "mpicx epoch", "mpicx mark", "mpicx Barrier"} {
		require.True(t, bytes.Contains(b.Bytes(), []byte(text)), text)
	}
}
