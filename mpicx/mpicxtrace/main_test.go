package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/checkpoint"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
	"github.com/mpicx/go-mpicx/mpicx/recovery"
)

// solver makes 30 iterations, with one checkpoint, from which it continues if a rank is lost.
func solver(ctx context.Context, world *mpicx.Comm, opts ...recovery.Option) error {
	x := []float64{0}
	return recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
		a.Store.Protect("x", &x)
		begin, err := a.Store.Restore(ctx)
		if err != nil && !errors.Is(err, checkpoint.ErrNone) {
			return err
		}
		for i := begin; i < 30; i++ {
			mpicx.Allreduce(a.Comm, []float64{1}, x, mpicx.Sum).MustWait(ctx)
			if i == 10 {
				a.Store.Save(ctx, i).MustWait(ctx)
			}
		}
		return nil
	}, append(opts, recovery.Checkpoint(checkpoint.Partner(1)))...)
}

// recorded returns the directory in which a test, and the processes that it starts, record.
func recorded(t *testing.T) string {
	if dir := os.Getenv("MPICX_TIMELINE"); dir != "" { // in such a process
		return dir
	}
	dir := t.TempDir()
	t.Setenv("MPICX_TIMELINE", dir)
	return dir
}

// A process that gets a SIGKILL leaves a whole file. The trace has its events, and those of the
// others.
func TestAProcessIsKilledAndReplaced(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	dir := recorded(t)
	all := mpicxtest.RunProcessFaults(t, 4, "kill 1 in Allreduce step 1 call 20", func(ctx context.Context, world *mpicx.Comm) error {
		return solver(ctx, world, recovery.Replace())
	}, mpicx.WithSpares(1))
	require.True(t, all[1].Killed)
	files, err := observe.ReadTimelines(dir)
	require.NoError(t, err)
	require.Len(t, files, 4, "one of each process")
	text, drawn := traced(t, dir, []string{"rank 0", "rank 1", "rank 2", "spare 3, rank 1"})
	for _, want := range []string{"3 ranks, 1 spare, on 1 machine", "rank 1 dies, and a spare takes its place", "killed; this is its last event", "communicator corrupted; dead: [1]", "spare 3, rank 1"} {
		require.Contains(t, text, want)
	}
	r := merge(jobsOf(files)[0], 1)
	found := r.incidents()
	require.Len(t, found, 1)
	tr := found[0]
	at := func(rank int, kind observe.Kind) int64 {
		t.Helper()
		after, ok := tr.at(rank, kind)
		require.True(t, ok, "%s at rank %d in\n%s", kind, rank, text)
		return after
	}
	death := min(at(0, observe.Death), at(2, observe.Death)) // the other one, and the spare, may see it later
	for _, rank := range []int{0, 2} {
		require.Less(t, at(rank, observe.Notice), at(rank, observe.Join))
		require.Less(t, at(rank, observe.Join), at(rank, observe.Verdict))
		require.Less(t, death, at(rank, observe.Verdict))
		require.Less(t, at(rank, observe.Verdict), at(rank, observe.Epoch))
		require.Less(t, at(rank, observe.Epoch), at(rank, observe.Replace))
	}
	for _, rank := range []int{0, 2, 3} {
		require.Less(t, death, at(rank, observe.Replace))
		require.Less(t, at(rank, observe.Replace), at(rank, observe.Restore))
		if o, known := tr.after[rank]; known {
			require.LessOrEqual(t, at(rank, observe.Restore), o.begin-tr.begin)
		}
	}
	require.NotEmpty(t, tr.after)
	require.NotContains(t, tr.after, 1)
	for _, kind := range []string{"dies", "death", "notice", "join", "verdict", "epoch", "replace", "restore", "first operation after"} {
		require.Contains(t, drawn.marks, kind)
	}
}

// A death on a grid is one error, though the ranks pass it on to the communicator from which the
// grid was made. It is the error that is drawn, and not the one before, of which no repair was
// needed. No operation of the dead continues.
func TestADeathOnAGrid(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	dir := recorded(t)
	mpicxtest.RunProcessFaults(t, 4, "must kill 1 in Allreduce step 1 call 20", func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
			grid := mpicx.CartCreate(a.Comm, []int{a.Comm.Size()}, nil).MustGet(ctx)
			if a.N == 0 {
				_ = grid.Try(ctx, failsAt(grid.Comm, 0))
			}
			if grid.Rank() == 1 && a.N == 0 {
				go mpicx.Recv(grid.Comm, []int{0}, 0, 7).Wait(ctx)
			}
			for range 30 {
				mpicx.Allreduce(grid.Comm, []int{1}, []int{0}, mpicx.Sum).MustWait(ctx)
			}
			return nil
		}, recovery.Replace())
	}, mpicx.WithSpares(1))
	text, drawn := traced(t, dir, []string{"rank 0", "rank 1", "rank 2", "spare 3, rank 1"})
	require.Regexp(t, `(?s)error 1, .*: rank 0 raises an error\n.*error 2, .*: rank 1 dies, and a spare takes its place\n`, text)
	require.NotContains(t, text, "error 3")
	require.NotContains(t, text, "raises on world:")
	require.Contains(t, drawn.svg, ">Rank 1 dies, and a spare takes its place<")
	require.Contains(t, drawn.marks, "replace")
	files, err := observe.ReadTimelines(dir)
	require.NoError(t, err)
	r := merge(jobsOf(files)[0], 1)
	died := r.events[slices.IndexFunc(r.events, func(e event) bool { return e.Kind == observe.Dies })]
	for _, o := range r.operations {
		require.True(t, o.rank != 1 || o.end <= died.at, "%+v, dead at %d", o, died.at)
	}
}

// A fresh process is in the tables of the errors since it has begun.
func TestFreshProcesses(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	dir := recorded(t)
	all := mpicxtest.RunProcessFaults(t, 3, "must kill 1 in Allreduce step 1 call 20; must kill 3 in Allreduce step 1 call 15", func(ctx context.Context, world *mpicx.Comm) error {
		return solver(ctx, world, recovery.Replace())
	}, mpicx.WithRespawn())
	require.Len(t, all, 5)
	text, drawn := traced(t, dir, []string{"rank 0", "rank 1", "rank 2", "fresh rank 3, rank 1", "fresh rank 4, rank 1"}, "-error", "2")
	head, errs, found := strings.Cut(text, "\nerror 1, ")
	require.True(t, found, text)
	require.Contains(t, head, "3 ranks, 2 fresh ranks, on 1 machine")
	first, second, found := strings.Cut(errs, "\nerror 2, ")
	require.True(t, found, text)
	require.Contains(t, first, "rank 1 dies, and a fresh rank takes its place")
	require.Contains(t, second, "rank 3 dies, and a fresh rank takes its place")
	number := " +[0-9,]+"
	require.Regexp(t, "start +replace +restore", first)
	require.NotContains(t, first, "fresh rank 4")
	require.Regexp(t, "fresh rank 4, rank 1( +–| +[0-9,]+)( +–)+"+number+number+number+" ", second)
	require.Contains(t, drawn.svg, "fresh rank 4, rank 1")
}

func TestARankDiesAndTheOthersGoOn(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	dir := t.TempDir()
	mpicxtest.RunFaults(t, 4, "must kill 3 in Allreduce step 1 call 20", func(ctx context.Context, world *mpicx.Comm) error {
		return solver(ctx, world, recovery.Shrink())
	}, mpicx.WithTimeline(dir))
	text, drawn := traced(t, dir, []string{"rank 0", "rank 1", "rank 2", "rank 3"})
	require.Contains(t, text, "rank 3 dies, and the others continue")
	require.Contains(t, drawn.marks, "shrink")
}

func TestRunsAndErrorsAreChosen(t *testing.T) {
	dir := t.TempDir()
	boom := func(failures int) {
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			for range failures {
				_ = world.Try(ctx, failsAt(world, 0))
			}
			return world.Barrier().Wait(ctx)
		}, mpicx.WithRanks(2), mpicx.WithTimeline(dir)))
	}
	boom(1)
	boom(2)
	boom(0)
	text, drawn := traced(t, dir, []string{"rank 0", "rank 1"}, "-error", "2")
	require.Equal(t, 2, drawn.arrows, "rank 0 tells rank 1 of each error")
	require.Contains(t, text, "job 1 of 1, run 2 of 3: 2 ranks")
	require.Contains(t, text, "error 2, ")
	require.Contains(t, drawn.marks, "fault")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-error", "3", "-svg", filepath.Join(t.TempDir(), "x"), dir}, exitUsage, "-error 3, expected one of the 2"},
		{[]string{"-run", "7", dir}, exitUsage, "-run 7, expected one of [1 2 3]"},
		{[]string{"-job", "2", dir}, exitUsage, "-job 2, expected 1 to 1"},
		{nil, exitUsage, "0 arguments, expected one directory"},
		{[]string{filepath.Join(dir, "none")}, exitFailed, filepath.Join(dir, "none")},
		{[]string{t.TempDir()}, exitFailed, "has no timeline"},
		{[]string{"-o", filepath.Join(dir, "none", "x"), dir}, exitFailed, "none"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, c.code, trace(c.args, io.Discard, &stderr), c.args)
		require.Contains(t, stderr.String(), c.says)
	}
	var stdout bytes.Buffer
	require.Zero(t, trace([]string{"-run", "3", dir}, &stdout, io.Discard))
	require.Contains(t, stdout.String(), "no errors")
}

// All ranks end by errors of their own.
func TestAllRanksEndByAnError(t *testing.T) {
	dir := t.TempDir()
	require.Error(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		half := world.Split(world.Rank()/2, 0).MustGet(ctx)
		return fmt.Errorf("of %v", half)
	}, mpicx.WithRanks(4), mpicx.WithTimeline(dir)))
	text, drawn := traced(t, dir, []string{"rank 0", "rank 3"})
	require.NotRegexp(t, "rank.* (dies?|has died)", text)
	require.NotContains(t, drawn.svg, "dies")
}
