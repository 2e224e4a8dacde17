package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/observe"
	"github.com/mpicx/go-mpicx/mpicx"
)

// MPICH's mpirun does not name its jobs.
func TestJobsWithoutAName(t *testing.T) {
	var files []observe.File
	begin := time.Now()
	for i, rank := range []int{1, 0, 2, 2, 0, 1, 0, 2, 1} { // three jobs of three processes
		lines := []observe.Event{{Run: 1, Rank: rank, Kind: observe.Start}, {Run: 2, Rank: rank, Kind: observe.Start}}
		files = append(files, observe.File{Name: fmt.Sprint(i), Head: observe.Head{Job: "launched", Clock: begin.Add(time.Duration(i))}, Lines: lines})
	}
	jobs := jobsOf(files)
	require.Len(t, jobs, 3)
	for i, j := range jobs {
		require.Equal(t, files[3*i:3*i+3], j.files)
		require.Equal(t, []int{1, 2}, j.runs)
	}
}

// told returns the text for a job of one process that has these lines of its ranks.
func told(t *testing.T, lines ...observe.Event) string {
	t.Helper()
	for i := range lines {
		lines[i].T, lines[i].Run = int64(i+1)*1000, 1
	}
	r := merge(job{files: []observe.File{{Head: observe.Head{Machine: "a"}, Lines: lines}}, runs: []int{1}}, 1)
	var text strings.Builder
	require.NoError(t, writeText(&text, r))
	return text.String()
}

// If a rank has the verdict of an error after the next error has begun, the verdict is in the
// table of the first error.
func TestErrorsOverlap(t *testing.T) {
	zero, one := 0, 1
	text := told(t,
		observe.Event{Rank: 0, Kind: observe.Fault, Comm: "world", Text: "boom"},
		observe.Event{Rank: 0, Kind: observe.Join, Comm: "world"},
		observe.Event{Rank: 1, Kind: observe.Notice, Comm: "world", By: &zero},
		observe.Event{Rank: 1, Kind: observe.Join, Comm: "world"},
		observe.Event{Rank: 0, Kind: observe.Verdict, Comm: "world", Text: "of boom"},
		observe.Event{Rank: 0, Kind: observe.Epoch, Comm: "world"},
		observe.Event{Rank: 0, Kind: observe.Dies},
		observe.Event{Rank: 1, Kind: observe.Verdict, Comm: "world", Text: "of boom"},
		observe.Event{Rank: 1, Kind: observe.Epoch, Comm: "world"},
		observe.Event{Rank: 1, Kind: observe.Death, Comm: "world", By: &zero},
		observe.Event{Rank: 1, Kind: observe.Notice, Comm: "world", Round: 1, By: &one},
		observe.Event{Rank: 1, Kind: observe.Join, Comm: "world", Round: 1},
		observe.Event{Rank: 1, Kind: observe.Verdict, Comm: "world", Round: 1, Text: "of the death"},
	)
	first, second, found := strings.Cut(text, "error 2, ")
	require.True(t, found, text)
	require.Regexp(t, `rank 1 +2 +3 +7 +8 `, first)
	require.NotContains(t, second, "of boom")
	require.Regexp(t, `rank 1 +3 +4 +5 +6 `, second)
}

// A rank whose program has ended has not died, even though with ulfm it counts as dead from
// then on. That is an error only if another rank needs it.
func TestARankHasEnded(t *testing.T) {
	zero, one := 0, 1
	ended := []observe.Event{
		{Rank: 0, Kind: observe.Fault, Comm: "world.dup1", Text: "boom"},
		{Rank: 0, Kind: observe.Fault, Comm: "world", Text: "boom"},
		{Rank: 0, Kind: observe.Verdict, Comm: "world", Text: "of boom"},
		{Rank: 0, Kind: observe.Epoch, Comm: "world"},
		{Rank: 0, Kind: observe.End, Text: "boom"},
		{Rank: 0, Kind: observe.Dies},
		{Rank: 1, Kind: observe.Death, Comm: "world", By: &zero},
	}
	text := told(t, ended...)
	require.NotContains(t, text, "dies")
	require.NotContains(t, text, "has died")
	require.NotContains(t, text, "error 2")
	require.Contains(t, text, "rank 0 raises an error\n")
	require.Contains(t, text, "rank 0 has ended by an error: boom")
	text = told(t, append(ended,
		observe.Event{Rank: 1, Kind: observe.Notice, Comm: "world", Round: 1, By: &one},
		observe.Event{Rank: 1, Kind: observe.Verdict, Comm: "world", Round: 1, Text: "of its end"},
		observe.Event{Rank: 1, Kind: observe.Epoch, Comm: "world", Round: 1},
		observe.Event{Rank: 1, Kind: observe.Shrink, Comm: "world", As: &zero, Size: 1, Text: "world.shrink0"},
	)...)
	require.NotContains(t, text, "dies")
	require.Contains(t, text, "rank 0 has ended and another rank needs it, and the others continue\n")
	require.Contains(t, text, "of its end")
}

// If no rank has died, the text does not say that ranks continue without others.
func TestShrinkWithoutADeath(t *testing.T) {
	zero := 0
	text := told(t,
		observe.Event{Rank: 0, Kind: observe.Fault, Comm: "world", Text: "boom"},
		observe.Event{Rank: 0, Kind: observe.Epoch, Comm: "world"},
		observe.Event{Rank: 0, Kind: observe.Shrink, Comm: "world", As: &zero, Size: 1, Text: "world.shrink0"},
	)
	require.Contains(t, text, "rank 0 raises an error\n")
}

// What a rank raises when it has continued after a corruption is another error.
func TestAFaultAfterACorruption(t *testing.T) {
	corruption := []observe.Event{
		{Rank: 0, Kind: observe.Fault, Comm: "world.dup1", Text: "boom", Final: true},
		{Rank: 0, Kind: observe.Verdict, Comm: "world.dup1", Text: "of boom", Final: true},
		{Rank: 0, Kind: observe.Epoch, Comm: "world.dup1"},
	}
	fault := observe.Event{Rank: 0, Kind: observe.Fault, Comm: "world", Text: "bang"}
	require.NotContains(t, told(t, append(corruption, fault)...), "bang")
	require.Contains(t, told(t, append(corruption, observe.Event{Rank: 0, Kind: observe.Waited, Op: "Barrier on world", For: 500}, fault)...), "error 2, ")
	require.Contains(t, told(t, append(corruption, observe.Event{Rank: 0, Kind: observe.Shrink, Comm: "world.dup1"}, fault)...), "error 2, ")
}

// Clocks of machines that differ by any time are aligned within the printed bound.
func TestClocksOfMachines(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		for range 5 {
			_ = world.Try(ctx, failsAt(world, 1))
		}
		return world.Barrier().Wait(ctx)
	}, mpicx.WithRanks(6), mpicx.WithTimeline(dir)))
	files, err := observe.ReadTimelines(dir)
	require.NoError(t, err)
	late := map[string]time.Duration{"a": 0, "b": 17 * time.Second, "c": -3 * time.Millisecond}
	var j job
	for name, by := range late { // as if the ranks were on three machines
		f := files[0]
		f.Name, f.Machine, f.Clock, f.Lines = name, name, f.Clock.Add(by), nil
		for _, l := range files[0].Lines {
			if string("abc"[l.Rank%3]) == name {
				f.Lines = append(f.Lines, l)
			}
		}
		j.files = append(j.files, f)
	}
	r := &run{number: 1}
	offsets := r.align(j)
	require.Len(t, r.notes, 2)
	first := r.machines[0]
	for _, m := range r.machines[1:] {
		wrong := (time.Duration(offsets[m]) + late[m] - late[first]).Abs()
		note := r.notes[0]
		if strings.HasPrefix(r.notes[1], "machine "+m) {
			note = r.notes[1]
		}
		bound, err := time.ParseDuration(note[strings.Index(note, "±")+len("±"):])
		require.NoError(t, err)
		require.LessOrEqual(t, wrong, bound)
		require.Less(t, bound, time.Second)
	}
	// No verdict is before a join.
	merged := merge(j, 1)
	joined, told := int64(0), int64(0)
	for _, e := range merged.events {
		switch {
		case e.Kind == observe.Join && e.Round == 2:
			joined = max(joined, e.at)
		case e.Kind == observe.Verdict && e.Round == 2 && told == 0:
			told = e.at
		}
	}
	require.LessOrEqual(t, joined, told)
}

func TestTicks(t *testing.T) {
	require.Equal(t, "2,500 µs", unitOf(2.6e6).String(2.5e6))
	require.Equal(t, "12,345,678 ms", unit{"ms", 1e6}.String(12345678e6))
	require.Equal(t, "-500 ms", unit{"ms", 1e6}.String(-5e8))
	for _, span := range []float64{900, 3e3, 2.6e6, 1.9e7, 2.1e7, 7e9, 3e10, 4e12} {
		u := unitOf(span)
		at := ticks(-0.1*span, span, u)
		require.GreaterOrEqual(t, len(at), 1, "%g", span)
		require.LessOrEqual(t, len(at), 10, "%g", span)
		for i := range at[1:] {
			require.NotEqual(t, u.String(at[i]), u.String(at[i+1]))
		}
	}
}
