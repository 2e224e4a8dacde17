package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// traced runs mpicxtrace, and returns its output and its drawings.
func traced(t *testing.T, dir string, args ...string) (text string, chrome, svg []byte) {
	t.Helper()
	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	code := trace(append(args, "-o", filepath.Join(out, "t.json"), "-svg", filepath.Join(out, "t.svg"), dir), &stdout, &stderr)
	require.Zero(t, code, stderr.String())
	chrome, err := os.ReadFile(filepath.Join(out, "t.json"))
	require.NoError(t, err)
	svg, err = os.ReadFile(filepath.Join(out, "t.svg"))
	require.NoError(t, err)
	return stdout.String(), chrome, svg
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
	text, chrome, svg := traced(t, dir)
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
	checkTrace(t, chrome, "rank 0", "rank 1", "rank 2", "spare 3, rank 1")
	marks := checkSVG(t, svg)
	for _, kind := range []string{"dies", "death", "notice", "join", "verdict", "epoch", "replace", "restore", "first operation after"} {
		require.Contains(t, marks, kind)
	}
}

// A death on a grid is one error, though the ranks pass it on to the communicator from which the grid was made. It is
// the error that is drawn, and not the one before, of which no repair was needed. Nothing of the dead goes on.
func TestADeathOnAGrid(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	dir := recorded(t)
	mpicxtest.RunProcessFaults(t, 4, "must kill 1 in Allreduce step 1 call 20", func(ctx context.Context, world *mpicx.Comm) error {
		return recovery.Run(ctx, world, func(ctx context.Context, a *recovery.Attempt) error {
			grid := mpicx.CartCreate(a.Comm, []int{a.Comm.Size()}, nil).MustGet(ctx)
			if a.N == 0 {
				_ = grid.Try(ctx, func(ctx context.Context) error {
					if grid.Rank() == 0 {
						return errors.New("boom")
					}
					return grid.Barrier().Wait(ctx)
				})
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
	text, chrome, svg := traced(t, dir)
	require.Regexp(t, `(?s)error 1, .*: rank 0 raises an error\n.*error 2, .*: rank 1 dies, and a spare takes its place\n`, text)
	require.NotContains(t, text, "error 3")
	require.NotContains(t, text, "raises on world:")
	require.Contains(t, string(svg), ">Rank 1 dies, and a spare takes its place<")
	checkTrace(t, chrome, "rank 0", "rank 1", "rank 2", "spare 3, rank 1")
	require.Contains(t, checkSVG(t, svg), "replace")
	files, err := observe.ReadTimelines(dir)
	require.NoError(t, err)
	r := merge(jobsOf(files)[0], 1)
	died := r.events[slices.IndexFunc(r.events, func(e event) bool { return e.Kind == observe.Dies })]
	for _, o := range r.operations {
		require.True(t, o.rank != 1 || o.end <= died.at, "%+v, dead at %d", o, died.at)
	}
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

// A fresh process is in the tables of the errors since it has begun.
func TestFreshProcesses(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	dir := recorded(t)
	all := mpicxtest.RunProcessFaults(t, 3, "must kill 1 in Allreduce step 1 call 20; must kill 3 in Allreduce step 1 call 15", func(ctx context.Context, world *mpicx.Comm) error {
		return solver(ctx, world, recovery.Replace())
	}, mpicx.WithRespawn())
	require.Len(t, all, 5)
	text, chrome, svg := traced(t, dir, "-error", "2")
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
	checkTrace(t, chrome, "rank 0", "rank 1", "rank 2", "fresh rank 3, rank 1", "fresh rank 4, rank 1")
	checkSVG(t, svg)
	require.Contains(t, string(svg), "fresh rank 4, rank 1")
}

func TestARankDiesAndTheOthersGoOn(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	dir := t.TempDir()
	mpicxtest.RunFaults(t, 4, "must kill 3 in Allreduce step 1 call 20", func(ctx context.Context, world *mpicx.Comm) error {
		return solver(ctx, world, recovery.Shrink())
	}, mpicx.WithTimeline(dir))
	text, chrome, svg := traced(t, dir)
	require.Contains(t, text, "rank 3 dies, and the others continue")
	checkTrace(t, chrome, "rank 0", "rank 1", "rank 2", "rank 3")
	require.Contains(t, checkSVG(t, svg), "shrink")
}

func TestRunsAndErrorsAreChosen(t *testing.T) {
	dir := t.TempDir()
	boom := func(failures int) {
		require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
			for range failures {
				_ = world.Try(ctx, func(ctx context.Context) error {
					if world.Rank() == 0 {
						return errors.New("<boom> & \"so\"")
					}
					return world.Barrier().Wait(ctx)
				})
			}
			return world.Barrier().Wait(ctx)
		}, mpicx.WithRanks(2), mpicx.WithTimeline(dir)))
	}
	boom(1)
	boom(2)
	boom(0)
	text, chrome, svg := traced(t, dir, "-error", "2")
	require.Equal(t, 2, checkTrace(t, chrome, "rank 0", "rank 1"), "rank 0 tells rank 1 of each error")
	require.Contains(t, text, "job 1 of 1, run 2 of 3: 2 ranks")
	require.Contains(t, text, "error 2, ")
	require.Contains(t, checkSVG(t, svg), "fault")
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

// All ranks end by errors of their own.
func TestAllRanksEndByAnError(t *testing.T) {
	dir := t.TempDir()
	require.Error(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		half := world.Split(world.Rank()/2, 0).MustGet(ctx)
		return fmt.Errorf("of %v", half)
	}, mpicx.WithRanks(4), mpicx.WithTimeline(dir)))
	text, _, svg := traced(t, dir)
	require.NotRegexp(t, "rank.* (dies?|has died)", text)
	require.NotContains(t, string(svg), "dies")
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

// Clocks of machines that differ by any time are aligned within the printed bound.
func TestClocksOfMachines(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, mpicx.Run(t.Context(), func(ctx context.Context, world *mpicx.Comm) error {
		for range 5 {
			_ = world.Try(ctx, func(ctx context.Context) error {
				if world.Rank() == 1 {
					return errors.New("boom")
				}
				return world.Barrier().Wait(ctx)
			})
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

// checkTrace checks what Perfetto requires of a trace in the Trace Event Format, and the
// tracks. It returns how many arrows the trace has.
func checkTrace(t *testing.T, b []byte, tracks ...string) (arrows int) {
	t.Helper()
	var doc struct {
		TraceEvents []map[string]any
	}
	require.NoError(t, json.Unmarshal(b, &doc))
	names := make(map[float64]string)
	flows := make(map[any]string)
	until := make(map[float64]float64)
	for _, e := range doc.TraceEvents {
		require.Contains(t, e, "pid")
		require.Contains(t, e, "tid")
		tid, ts := e["tid"].(float64), e["ts"].(float64)
		require.NotEmpty(t, e["name"])
		require.GreaterOrEqual(t, ts, 0.0)
		switch e["ph"] {
		case "M":
			if e["name"] == "thread_name" {
				names[tid] = e["args"].(map[string]any)["name"].(string)
			}
		case "X":
			require.GreaterOrEqual(t, e["dur"].(float64), 0.0)
			require.GreaterOrEqual(t, ts+1e-3, until[tid], "slices of a track do not overlap")
			until[tid] = ts + e["dur"].(float64)
		case "i":
			require.Equal(t, "t", e["s"])
		case "s", "f":
			flows[e["id"]] += e["ph"].(string)
		default:
			require.Fail(t, "phase", "%v", e["ph"])
		}
		if e["ph"] != "M" {
			require.NotEmpty(t, names[tid], "a track has its name before its events")
		}
	}
	for _, phases := range flows {
		require.Equal(t, "sf", phases)
	}
	for _, track := range tracks {
		require.Contains(t, names, func() float64 {
			for id, name := range names {
				if name == track {
					return id
				}
			}
			return -1
		}(), track)
	}
	return len(flows)
}

// checkSVG parses a drawing, and returns the titles of its marks.
func checkSVG(t *testing.T, b []byte) string {
	t.Helper()
	var titles []string
	d := xml.NewDecoder(bytes.NewReader(b))
	for inTitle := false; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			inTitle = e.Name.Local == "title"
			for _, a := range e.Attr {
				require.NotContains(t, a.Value, "NaN")
				require.NotContains(t, a.Value, "Inf")
			}
		case xml.CharData:
			if inTitle {
				titles = append(titles, string(e))
			}
		case xml.EndElement:
			inTitle = false
		}
	}
	return strings.Join(titles, "\n")
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
