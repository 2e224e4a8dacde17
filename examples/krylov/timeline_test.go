package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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

// -timeline records every rank: here an error of one rank, which the others get too.
func TestTimeline(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "timeline")
	code, _ := solve(t, "-matrix", matrices+"poisson3d-20.mtx.gz", "-ranks", "3", "-timeline", dir, "-inject", "rank=1,iter=20,kind=error")
	require.Equal(t, exitConverged, code)
	all := recorded(t, dir)
	require.Len(t, all, 3)
	for rank := range 3 {
		for _, event := range []string{"start", "wait", "verdict", "epoch", "end"} {
			require.Contains(t, all[rank], event, "rank %d", rank)
		}
	}
	require.Contains(t, all[1], "fault")
	require.NotContains(t, all[0], "fault")
}
