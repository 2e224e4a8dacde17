package observe

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// open opens the timeline of a job for its run-th Run.
func open(t *testing.T, dir, job string, run int) *Timeline {
	w, n, err := OpenTimeline(dir, job, func(err error) { require.NoError(t, err) })
	require.NoError(t, err)
	require.Equal(t, run, n)
	return w
}

func read(t *testing.T, dir string) File {
	files, err := ReadTimelines(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	return files[0]
}

// A process has one file, which may end anywhere.
func TestAProcessHasOneFile(t *testing.T) {
	dir, name := filepath.Join(t.TempDir(), "made", "[here]"), ""
	for run := 1; run <= 3; run++ {
		w, rank := open(t, dir, "job", run), 7
		w.write(Event{Run: run, Rank: run, Kind: Notice, By: &rank, Text: "\"{é\n"})
		w.Close()
		name = w.name
	}
	f := read(t, dir)
	require.Equal(t, os.Getpid(), f.PID)
	require.Equal(t, "job", f.Job)
	require.Len(t, f.Lines, 3)
	for i, l := range f.Lines {
		require.Equal(t, i+1, l.Run)
		require.Equal(t, 7, *l.By)
		require.Equal(t, "\"{é\n", l.Text)
	}
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	for n := range b {
		whole := bytes.Count(b[:n], []byte("}")) // a line may lack only its end
		f, ok := ReadTimeline(b[:n])
		require.Equal(t, whole > 0, ok, "%d bytes", n)
		require.Len(t, f.Lines, max(whole-1, 0), "%d bytes", n)
	}
	_, err = ReadTimelines(t.TempDir())
	require.ErrorContains(t, err, "no timeline")
}

// A file that was removed between two Runs is made again.
func TestAFileThatWasRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	for run := 1; run <= 3; run++ {
		w := open(t, dir, "", run)
		for range 3 {
			w.write(Event{Run: run, Kind: Wait, Op: "Barrier"})
			w.write(Event{Run: run, Kind: Join})
		}
		w.Close()
		f := read(t, dir)
		require.Len(t, f.Lines, 6, "run %d", run)
		require.Equal(t, run, f.Lines[0].Run)
		require.NoError(t, os.RemoveAll(dir))
	}
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	for range 2 { // in place of the directory
		_, _, err := OpenTimeline(dir, "", nil)
		require.ErrorContains(t, err, dir)
	}
	require.NoError(t, os.Remove(dir))
	w := open(t, dir, "", 4)
	w.write(Event{Run: 4, Kind: Join})
	w.Close()
	require.Len(t, read(t, dir).Lines, 1)
}

// The file of a program that runs for long stays small, and has each error with the operations
// around it.
func TestOperationsAreOverwrittenAndErrorsStay(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, "", 1)
	defer w.Close()
	const errors, between = 3, 20_000
	at := int64(0)
	write := func(kind Kind) {
		at++
		w.write(Event{T: at, Run: 1, Kind: kind, Op: fmt.Sprintf("Allreduce #%d on world", at*at)})
	}
	for range errors {
		for range between {
			write(Waited)
		}
		write(Fault)
	}
	for range between {
		write(Waited)
	}
	info, err := os.Stat(w.name)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64((errors+1)*(keptBefore+keptAfter+1000)))
	f := read(t, dir)
	var faults []int
	for i, l := range f.Lines {
		require.Equal(t, fmt.Sprintf("Allreduce #%d on world", l.T*l.T), l.Op, "a line is whole")
		if l.Kind == Fault {
			faults = append(faults, i)
		}
	}
	require.Len(t, faults, errors)
	for _, i := range faults { // none is missing in between
		for k := i - 1000; k < i+500; k++ {
			require.Equal(t, f.Lines[i].T+int64(k-i), f.Lines[k].T)
		}
	}
	require.Equal(t, at, f.Lines[len(f.Lines)-1].T)
}

type fullDisk struct{ left int }

var errFull = errors.New("no space left on device")

func (d *fullDisk) Close() error { return nil }
func (d *fullDisk) WriteAt(b []byte, _ int64) (int, error) {
	if d.left--; d.left < 0 {
		return len(b) / 2, errFull
	}
	return len(b), nil
}

func TestAFullDiskIsToldOnce(t *testing.T) {
	var told []error
	w := &Timeline{file: &fullDisk{2}, start: -1, users: 1, warn: func(err error) { told = append(told, err) }}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				w.write(Event{Run: 1, Kind: Wait, ID: w.ids.Add(1)})
				w.write(Event{Run: 1, Kind: Join})
			}
		})
	}
	all.Wait()
	w.Close()
	require.Equal(t, []error{errFull}, told)
}
