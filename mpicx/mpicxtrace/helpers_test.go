package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
)

// failsAt is a function of Try that fails at one rank.
func failsAt(c *mpicx.Comm, rank int) func(context.Context) error {
	return func(ctx context.Context) error {
		if c.Rank() == rank {
			return errors.New("<boom> & \"so\"")
		}
		return c.Barrier().Wait(ctx)
	}
}

// drawn are the drawings of an error.
type drawn struct {
	arrows int    // in the trace
	svg    string // the picture
	marks  string // the titles of its marks
}

// traced runs mpicxtrace, and returns its output and its drawings, which it checks. Tracks are
// those of the trace.
func traced(t *testing.T, dir string, tracks []string, args ...string) (text string, d drawn) {
	t.Helper()
	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	code := trace(append(args, "-o", filepath.Join(out, "t.json"), "-svg", filepath.Join(out, "t.svg"), dir), &stdout, &stderr)
	require.Zero(t, code, stderr.String())
	chrome, err := os.ReadFile(filepath.Join(out, "t.json"))
	require.NoError(t, err)
	svg, err := os.ReadFile(filepath.Join(out, "t.svg"))
	require.NoError(t, err)
	d.arrows, d.svg, d.marks = checkTrace(t, chrome, tracks), string(svg), checkSVG(t, svg)
	return stdout.String(), d
}

// checkTrace checks what Perfetto requires of a trace in the Trace Event Format, and the
// tracks. It returns how many arrows the trace has.
func checkTrace(t *testing.T, b []byte, tracks []string) (arrows int) {
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
	require.Subset(t, slices.Collect(maps.Values(names)), tracks)
	return len(flows)
}

// checkSVG parses a drawing, and returns the titles of its marks.
func checkSVG(t *testing.T, b []byte) string {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(b))
	_, err := d.Token()
	for err == nil {
		_, err = d.Token()
	}
	require.Equal(t, io.EOF, err)
	require.NotRegexp(t, `="[^"]*(NaN|Inf)`, string(b))
	return strings.Join(regexp.MustCompile("<title>[^<]*").FindAllString(string(b), -1), "\n")
}
