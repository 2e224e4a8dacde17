package observe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Format is the format in a Head.
const Format = "mpicx timeline 1"

// A Head describes the process whose lines a file has.
type Head struct {
	Format  string    `json:"format"`
	Job     string    `json:"job"`     // the same in all files of a job; "": unknown
	Machine string    `json:"machine"` // processes with the same one share a clock
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Clock   time.Time `json:"clock"` // the time at which T is 0, by the machine's clock
}

// A File has the contents of a file: its lines ordered by their times, and lines of the same
// time in the order of the file.
type File struct {
	Name string
	Head
	Lines []Event
}

// ReadTimelines reads all files in a directory. It ignores files of other formats.
func ReadTimelines(dir string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []File
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if filepath.Ext(name) != ".jsonl" {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if f, ok := ReadTimeline(b); ok {
			f.Name = name
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no timeline, expected files that begin with {\"format\":%q", dir, Format)
	}
	return all, nil
}

// ReadTimeline reads a file, and skips text that is not a line. It returns false if there is no
// Head.
func ReadTimeline(b []byte) (f File, ok bool) {
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	if json.Unmarshal(first, &f.Head) != nil || f.Format != Format {
		return f, false
	}
	for text := range bytes.Lines(rest) {
		var l Event
		if json.Unmarshal(text, &l) == nil && l.isWhole() {
			f.Lines = append(f.Lines, l)
		}
	}
	slices.SortStableFunc(f.Lines, func(a, b Event) int { return cmp.Compare(a.T, b.T) })
	return f, true
}

// isWhole says whether the line has all fields that its kind needs.
func (l *Event) isWhole() bool {
	hasRanks := true
	switch l.Kind {
	case Death, Notice, Revoke:
		hasRanks = l.By != nil
	case Replace:
		hasRanks = l.As != nil
	}
	return hasRanks && l.Kind != "" && l.Run > 0 && l.Rank >= 0
}
