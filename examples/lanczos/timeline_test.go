package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// recorded returns the kinds of events in each rank's file of -timeline.
func recorded(t *testing.T, dir string) map[int]map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1, "one of each process")
	f, err := os.Open(files[0])
	require.NoError(t, err)
	defer f.Close()
	all := make(map[int]map[string]bool)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		l := struct {
			Event string
			Rank  int
		}{}
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Event == "" { // the first line, which is no event
			continue
		}
		if all[l.Rank] == nil {
			all[l.Rank] = make(map[string]bool)
		}
		all[l.Rank][l.Event] = true
	}
	require.NoError(t, lines.Err())
	return all
}

// -timeline records every rank: here one that dies, if deaths are survived, and the spare that
// takes its place.
func TestTimeline(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "timeline")
	args := []string{"-ranks", "3", "-timeline", dir}
	ulfm := mpicx.Backend == "ulfm"
	if ulfm {
		args = append(args, "-spares", "1", "-kill", "1@120")
	}
	solved(t, args...)
	all := recorded(t, dir)
	for rank := range 3 {
		require.Contains(t, all[rank], "start")
		require.Contains(t, all[rank], "wait")
	}
	if !ulfm {
		require.Len(t, all, 3)
		return
	}
	require.Len(t, all, 4)
	require.Contains(t, all[1], "dies")
	for _, rank := range []int{0, 2, 3} {
		for _, event := range []string{"replace", "restore", "end"} {
			require.Contains(t, all[rank], event, "rank %d", rank)
		}
	}
}
